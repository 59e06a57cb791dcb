package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// podsIndexed has pods that find each other in a subdomain, and the first by a service.
const podsIndexed = `apiVersion: v1
kind: Service
metadata: {name: first}
spec: {selector: {batch.kubernetes.io/job-completion-index: "0"}, ports: [{port: 7000}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: meet}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      subdomain: mesh
      restartPolicy: Never
      containers:
      - name: main
        image: IMAGE
        command:
        - sh
        - -c
        - |
          say() { until echo "$1" | nc $2 7000; do sleep 0.1; done; }
          if [ $JOB_COMPLETION_INDEX = 0 ]; then
            nc -ll -p 7000 -e sh -c 'read line; echo $line >> /data/indexed' &
            until [ "$(cat /data/indexed 2>/dev/null | wc -l)" = 3 ]; do sleep 0.1; done
            kill $!
          else
            say "$(hostname)/$(hostname -f)" meet-0.mesh
            say "full" meet-0.mesh.default.svc.cluster.local
            say "service" first
          fi
        volumeMounts: [{name: data, mountPath: /data}]
        resources: {limits: {cpu: "1", memory: 64Mi}}
      volumes: [{name: data, hostPath: {path: /project/pods}}]
`

// podsOfSet has two kinds of pods, which run different commands.
const podsOfSet = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  successPolicy: {operator: All, targetReplicatedJobs: [head]}
  replicatedJobs:
  - name: hand
    replicas: 2
    template:
      spec:
        template:
          spec:
            containers:
            - name: main
              image: IMAGE
              command: [sh, -c, 'until echo "hand $JOB $(hostname)" | nc set-head-0-0.set 7000; do sleep 0.1; done; sleep 1000']
              env: [{name: JOB, valueFrom: {fieldRef: {fieldPath: "metadata.labels['jobset.sigs.k8s.io/job-index']"}}}]
              resources: {limits: {cpu: "1", memory: 64Mi}}
              volumeMounts: [{name: data, mountPath: /data}]
            volumes: [{name: data, hostPath: {path: /project/pods}}]
            terminationGracePeriodSeconds: 1
  - name: head
    template:
      spec:
        template:
          spec:
            containers:
            - name: main
              image: IMAGE
              args: [sh, -c, 'nc -ll -p 7000 -e sh -c "read line; echo \$line >> /data/set" & until [ "$(cat /data/set 2>/dev/null | wc -l)" = 2 ]; do sleep 0.1; done; kill $!']
              resources: {limits: {cpu: "1", memory: 128Mi}}
              volumeMounts: [{name: data, mountPath: /data}]
            volumes: [{name: data, hostPath: {path: /project/pods}}]
            terminationGracePeriodSeconds: 1
`

// podsOfTorch has ranks that meet where the operator's variables say.
const podsOfTorch = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ddp}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: TEMPLATE}
    Worker: {replicas: 2, restartPolicy: Never, template: TEMPLATE}
`

const torchTemplate = `{spec: {containers: [{name: pytorch, image: IMAGE, command: [sh, -c, '
if [ $RANK = 0 ]; then nc -ll -p $MASTER_PORT -e sh -c "read line; echo \$line >> /data/torch" & until [ "$(cat /data/torch 2>/dev/null | wc -l)" = 2 ]; do sleep 0.1; done; kill $!;
else until echo "$RANK of $WORLD_SIZE $1" | nc $MASTER_ADDR $MASTER_PORT; do sleep 0.1; done; fi', sh, "node $(PET_NODE_RANK)"],
resources: {limits: {cpu: "1", memory: 64Mi}}, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, hostPath: {path: /project/pods}}]}}`

// podsOfVolcano has a file with the hosts of a task.
const podsOfVolcano = `apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: vc}
spec:
  minAvailable: 3
  plugins: {env: [], svc: []}
  tasks:
  - name: hand
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: m
          image: IMAGE
          command: [sh, -c, 'until echo "$VC_TASK_INDEX of $VC_HAND_NUM $(hostname)" | nc $(cat /etc/volcano/head.host) 7000; do sleep 0.1; done; sleep 1000']
          resources: {limits: {cpu: "1", memory: 64Mi}}
          volumeMounts: [{name: data, mountPath: /data}]
        volumes: [{name: data, hostPath: {path: /project/pods}}]
        terminationGracePeriodSeconds: 1
  - name: head
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: m
          image: IMAGE
          command: [sh, -c, 'nc -ll -p 7000 -e sh -c "read line; echo \$line >> /data/volcano" & until [ "$(cat /data/volcano 2>/dev/null | wc -l)" = 2 ]; do sleep 0.1; done; kill $!']
          resources: {limits: {cpu: "1", memory: 64Mi}}
          volumeMounts: [{name: data, mountPath: /data}]
        volumes: [{name: data, hostPath: {path: /project/pods}}]
        terminationGracePeriodSeconds: 1
`

// TestPodsFindEachOther runs jobs of Kubernetes whose pods look for each other by name: of an
// indexed job, of a set, of PyTorch's operator and of Volcano; the first two ask for nodes of their own.
func TestPodsFindEachOther(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 3})
	alone := s.file(strings.NewReplacer("IMAGE", image, "completions: 2", "completions: 1", "parallelism: 2", "parallelism: 1",
		`if [ $JOB_COMPLETION_INDEX = 0 ]; then`, `grep meet-0 /etc/hosts | cut -f 2-; exit; if true; then`).Replace(podsIndexed))
	s.well(alone)
	if want, got := "meet-0.mesh.default.svc.cluster.local meet-0.mesh.default.svc meet-0.mesh.default meet-0.mesh meet-0 mesh.default.svc.cluster.local mesh.default.svc mesh.default mesh "+
		"first.default.svc.cluster.local first.default.svc first.default first\n", s.must("glog", alone); got != want {
		t.Errorf("a pod alone is known as %q, want %q", got, want)
	}
	apart := "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {job-name: meet}}}]}}\n      subdomain: mesh"
	for _, tc := range []struct {
		name, manifest string
		nodes          int
		want           []string
	}{
		{"indexed", strings.Replace(podsIndexed, "subdomain: mesh", apart, 1), 2, []string{"full", "meet-1/meet-1.mesh.default.svc.cluster.local", "service"}},
		{"set", strings.Replace(podsOfSet, "{name: set}", "{name: set, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: kubernetes.io/hostname}}", 1), 3, []string{"hand 0 set-hand-0-0", "hand 1 set-hand-1-0"}},
		{"torch", strings.ReplaceAll(podsOfTorch, "TEMPLATE", torchTemplate), 1, []string{"1 of 3 node 1", "2 of 3 node 2"}},
		{"volcano", podsOfVolcano, 1, []string{"0 of 2 vc-hand-0", "1 of 2 vc-hand-1"}},
	} {
		id := s.file(strings.ReplaceAll(tc.manifest, "IMAGE", image))
		s.well(id)
		heard, err := os.ReadFile(filepath.Join(s.project(), "pods", tc.name))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSpace(string(heard)), "\n")
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: the first pod heard (-want +got):\n%s", tc.name, diff)
		}
		if d := s.job(id); len(d.Nodes) != tc.nodes {
			t.Errorf("%s: it ran on %v, want %d nodes", tc.name, d.Nodes, tc.nodes)
		}
	}
}
