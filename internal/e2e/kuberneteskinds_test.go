package e2e

import (
	"fmt"
	"strings"
	"testing"

	"gbatch/internal/client"
)

// kubernetesKinds are manifests of kinds that are not written as one job with one
// container is, and what each says.
var kubernetesKinds = map[string]struct{ manifest, says string }{
	"claim-of-a-template": {`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName.contains('A100') && device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"}}]}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: claims}
spec:
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: c, resourceClaimTemplateName: two}]
      containers: [{name: c, image: IMAGE, command: [sh, -c, "echo $GBATCH_NUM_GPUS"], resources: {claims: [{name: c}], limits: {cpu: 1, memory: 128Mi}}, securityContext: {capabilities: {add: [IPC_LOCK]}}}]
`, "2\n"},
	"claim-by-name": {`apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.nvidia.com}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: claim}
spec:
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: c, source: {resourceClaimName: one}}]
      containers: [{name: c, image: IMAGE, command: [sh, -c, "echo $GBATCH_NUM_GPUS"], resources: {claims: [{name: c, request: gpu}], limits: {cpu: 1, memory: 128Mi}}}]
`, "1\n"},
	"two-claims-and-a-container-before": {`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: exact}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].productName.lowerAscii().contains('a100')"}}]}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: claims}
spec:
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: c, resourceClaimTemplateName: exact}, {name: d, resourceClaimTemplateName: exact}]
      initContainers: [{name: i, image: IMAGE, command: [sh, -c, "echo before > /w/x"], volumeMounts: [{name: w, mountPath: /w}]}]
      containers: [{name: c, image: IMAGE, command: [sh, -c, "cat /w/x; echo $GBATCH_NUM_GPUS"], resources: {claims: [{name: c}, {name: d}], limits: {cpu: 1, memory: 128Mi}}, volumeMounts: [{name: w, mountPath: /w}]}]
      volumes: [{name: w, emptyDir: {}}]
`, "before\n2\n"},
	"memory-of-the-gpus": {strings.Replace(ofPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
          {matchExpressions: [{key: nvidia.com/gpu.memory, operator: Gt, values: ["20000"]}, {key: zone, operator: In, values: [a, b]}]}]}}}`, "echo $GBATCH_NUM_GPUS"), "cpu: 1", "nvidia.com/gpu: 1, cpu: 1", 1), "1\n"},
	"objects-beside-it": {`apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
---
` + ofPod("dnsPolicy: ClusterFirst", "echo alone"), "alone\n"},
	"one-label-in-several-terms": {ofPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
          {matchExpressions: [{key: rack, operator: In, values: [r1]}]}, {matchExpressions: [{key: rack, operator: In, values: [r7]}]}]}}}`, "echo there"), "there\n"},
	"terms-of-which-one-is-true": {ofPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
          {matchExpressions: [{key: zone, operator: In, values: [b]}, {key: disk, operator: In, values: [nvme]}]},
          {matchExpressions: [{key: rack, operator: In, values: [r6, r7]}, {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}]}}}`, "echo placed"), "placed\n"},
	"nodes-that-are-not-wanted": {ofPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
          {matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [nobody]}]}]}}}`, "echo elsewhere"), "elsewhere\n"},
	"as-kubectl-writes-it": {`apiVersion: batch/v1
kind: Job
metadata: {creationTimestamp: null, name: written, uid: 8f8c, generation: 1}
spec:
  template:
    metadata: {creationTimestamp: null}
    spec:
      containers: [{command: [echo, written], image: IMAGE, name: c, resources: {}, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}]
      restartPolicy: Never
status: {}
`, "written\n"},
	"files-under-a-mount": {`apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {run.sh: "cat /app/state /app/run.sh\n", state: "of the map\n"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hidden}
spec:
  template:
    spec:
      restartPolicy: Never
      initContainers: [{name: i, image: IMAGE, command: [sh, -c, "echo of the volume > /w/state"], volumeMounts: [{name: w, mountPath: /w}]}]
      containers: [{name: c, image: IMAGE, command: [sh, /app/run.sh], resources: {limits: {cpu: 1, memory: 128Mi}}, volumeMounts: [{name: app, mountPath: /app}, {name: w, mountPath: /app/state, subPath: state}]}]
      volumes: [{name: app, configMap: {name: app}}, {name: w, emptyDir: {}}]
`, "of the volume\ncat /app/state /app/run.sh\n"},
}

func ofPod(field, command string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: pod}
spec:
  template:
    spec:
      restartPolicy: Never
      %s
      containers: [{name: c, image: IMAGE, command: [sh, -c, %q], resources: {limits: {cpu: 1, memory: 128Mi}}}]
`, field, command)
}

const kubernetesTimes = `apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "* * * * *"
  timeZone: Asia/Kolkata
  concurrencyPolicy: POLICY
  jobTemplate:
    spec:
      completions: 3
      parallelism: 2
      completionMode: Indexed
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: IMAGE, command: [sh, -c, 'COMMAND'], resources: {limits: {cpu: "1", memory: 128Mi}}}]
`

// TestKubernetesKinds runs manifests of many kinds, while one with a time table and
// tasks waits for its minute.
func TestKubernetesKinds(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{nodeConfig: "gpu: {simulate: \"a100:4\"}\nfeatures: [zone=b, rack=r7]\n"})
	with := func(text string) string { return strings.ReplaceAll(text, "IMAGE", image) }
	template := s.file(with(strings.NewReplacer("POLICY", "Forbid", "COMMAND", "echo task $JOB_COMPLETION_INDEX").Replace(kubernetesTimes)))
	for name, tc := range kubernetesKinds {
		t.Run(name, func(t *testing.T) {
			id := s.file(with(tc.manifest))
			s.well(id)
			lines := strings.SplitAfter(s.run("glog", id).out, "gbatch: the job itself\n")
			if got := lines[len(lines)-1]; got != tc.says {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
		})
	}
	made := s.madeBy(template)
	s.well(made)
	for i := range 3 {
		if got, want := s.must("glog", fmt.Sprintf("%s_%d", made, i)), fmt.Sprintf("task %d\n", i); got != want {
			t.Errorf("task %d says %q", i, got)
		}
	}
}

// madeBy waits for a job that a template makes.
func (s *site) madeBy(template string) (id string) {
	s.t.Helper()
	if !poll(2*patience, func() bool { // its next time may be a minute away
		list, err := s.api.Jobs(s.t.Context(), client.JobFilter{All: true})
		if err != nil {
			return false
		}
		for _, j := range list.Jobs {
			if fmt.Sprint(j.Template) == template {
				id = fmt.Sprint(j.Number)
			}
		}
		return id != ""
	}) {
		s.t.Fatalf("job %s made no job:\n%s", template, s.must("gqueue", "show", template))
	}
	return id
}
