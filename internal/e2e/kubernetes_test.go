package e2e

import (
	"strings"
	"testing"

	"gbatch/internal/job"
)

// kubernetesManifest has what a job of Kubernetes finds around it: a config map as
// files and as variables, a secret as both, the downward API, a container that runs before,
// and empty directories on disk and in memory.
const kubernetesManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  MODE: fast
  run.sh: |
    #!/bin/sh
    echo "args $*"
    echo "mode $CFG_MODE shard $SHARD token $TOKEN cpus $CPUS"
    echo "init $(cat /work/ready)"
    grep -q "[^0-9.]$IP\$" /proc/net/fib_trie && test "$HOST" = "$GBATCH_HOST_ADDRESS" && echo addressed
    stat -f -c %T /fast
    cat /root/.login/TOKEN /etc/pod/app && test ! -e /root/.login/none && echo
    echo x > /fast/y && echo z > /work/z && echo written
---
apiVersion: batch/v1
kind: Job
metadata: {name: around}
spec:
  suspend: true
  completions: 2
  completionMode: Indexed
  template:
    metadata: {labels: {app: around}}
    spec:
      restartPolicy: Never
      initContainers:
      - name: prepare
        image: IMAGE
        command: [sh, -c, 'echo "it''s $WHO ${SHARD:-unset}" > /work/ready']
        env: [{name: WHO, value: "init-$(JOB_COMPLETION_INDEX)"}]
        volumeMounts: [{name: work, mountPath: /work}]
      containers:
      - name: main
        image: IMAGE
        command: ["/scripts/run.sh", "--shard=$(SHARD)", "$(NOBODY)", "$$5"]
        envFrom: [{configMapRef: {name: settings}, prefix: CFG_}, {secretRef: {name: keys}}]
        env:
        - {name: SHARD, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
        - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        resources: {limits: {cpu: "1", memory: 64Mi}}
        volumeMounts: [{name: scripts, mountPath: /scripts}, {name: work, mountPath: /work}, {name: fast, mountPath: /fast}, {name: login, mountPath: /root/.login}, {name: pod, mountPath: /etc/pod}]
      volumes:
      - {name: login, secret: {secretName: keys}}
      - {name: pod, projected: {sources: [{downwardAPI: {items: [{path: app, fieldRef: {fieldPath: "metadata.labels['app']"}}]}}]}}
      - {name: work, emptyDir: {}}
      - {name: fast, emptyDir: {medium: Memory}}
      - {name: scripts, configMap: {name: settings, defaultMode: 0755}}
`

func TestKubernetesSurroundings(t *testing.T) {
	s := newSite(t, siteOptions{})
	secret := s.write("apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {TOKEN: hush}\n")
	id := s.file(strings.ReplaceAll(kubernetesManifest, "IMAGE", image), "--with", secret)
	if d := s.job(id); d.State != job.OnHold {
		t.Fatalf("a suspended job is %s", d.State)
	}
	s.must("gcancel", "--release", id)
	s.well(id)
	want := "gbatch: prepare, 1 of 1 that run before the job\ngbatch: the job itself\nargs --shard=1 $(NOBODY) $5\nmode fast shard 1 token hush cpus 1\ninit it's init-1 unset\naddressed\ntmpfs\nhusharound\nwritten\n"
	if got := s.run("glog", id+"_1").out; got != want {
		t.Errorf("task 1 says %q, want %q", got, want)
	}
}
