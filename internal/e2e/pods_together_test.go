package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// podsTogether are four pods of two templates. The hands say what they are to the head, and
// once more when the test has the node's daemon back.
const podsTogether = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: near}
spec:
  successPolicy: {operator: All, targetReplicatedJobs: [head]}
  replicatedJobs:
  - name: hand
    replicas: 3
    template:
      spec:
        template:
          spec:
            containers:
            - name: main
              image: IMAGE
              command:
              - sh
              - -c
              - |
                say() { until echo "$1 $(hostname) $GBATCH_ADDRESS $GBATCH_GPU_UUIDS" | nc near-head-0-0.near 7000; do sleep 0.1; done; }
                say one
                until [ -e /data/again ]; do sleep 0.1; done
                say two
                sleep 1000
              resources: {limits: {cpu: "1", memory: 64Mi, nvidia.com/gpu: "1"}}
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
              command: [sh, -c, 'nc -ll -p 7000 -e sh -c "read line; echo \$line >> /data/near" & until [ "$(grep -c two /data/near)" = 3 ]; do sleep 0.1; done; kill $!']
              resources: {limits: {cpu: "1", memory: 128Mi}}
              volumeMounts: [{name: data, mountPath: /data}]
            volumes: [{name: data, hostPath: {path: /project/pods}}]
            terminationGracePeriodSeconds: 1
`

// podsInStep are four pods of one template, of which one may end.
const podsInStep = `apiVersion: batch/v1
kind: Job
metadata: {name: step}
spec:
  completions: 4
  parallelism: 4
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: mesh
      restartPolicy: Never
      containers:
      - {name: main, image: IMAGE, command: [sh, -c, 'if [ $JOB_COMPLETION_INDEX = 2 ]; then OTHER; fi; sleep 1000'], resources: {limits: {cpu: 250m, memory: 64Mi}}}
      terminationGracePeriodSeconds: 1
`

// TestPodsShareANode: pods that find each other are on one node where there is one, each with
// an address and a GPU of its own, and go on while the node's daemon is killed. One that fails
// ends the others, once; and so does a cancellation.
func TestPodsShareANode(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 1, nodeGPUs: []string{"h100:4"}})
	heard := filepath.Join(s.project(), "pods", "near")
	id := s.file(strings.ReplaceAll(podsTogether, "IMAGE", image))
	said := func(word string) (lines []string) {
		b, err := os.ReadFile(heard)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word+" "); ok {
				lines = append(lines, rest)
			}
		}
		slices.Sort(lines)
		return lines
	}
	eventually(t, "all have met", func() bool { return len(said("one")) == 3 })
	s.nodes[0].kill()
	s.nodes[0].start()
	s.waitNodes("up", 1)
	if err := os.WriteFile(filepath.Join(s.project(), "pods", "again"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s.well(id)
	d := s.job(id)
	ranks := d.Attempts[0].Ranks
	if len(d.Attempts) != 1 || len(ranks) != 4 || len(d.Nodes) != 1 {
		t.Fatalf("want one attempt of four ranks on one node:\n%s", describe(d))
	}
	one, two := said("one"), said("two")
	if !slices.Equal(one, two) {
		t.Errorf("the head heard %q, and %q after the daemon was back", one, two)
	}
	seen := map[string]bool{}
	for i, line := range two {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != fmt.Sprintf("near-hand-%d-0", i) || seen[words[1]] || seen[words[2]] {
			t.Fatalf("the head heard %q, want each hand's name with an address and a GPU that no other has", two)
		}
		seen[words[1]], seen[words[2]] = true, true
	}
	failing := s.file(strings.NewReplacer("IMAGE", image, "OTHER", "exit 3").Replace(podsInStep))
	d = s.wait(failing)
	told := 0
	for _, e := range d.Events {
		if strings.HasPrefix(e.Message, "rank 2 exit code 3") {
			told++
		}
	}
	if d.State != job.Failed || told != 1 || len(d.Attempts) != 1 {
		t.Errorf("want it to fail once by its third rank:\n%s", describe(d))
	}
	ending := s.file(strings.NewReplacer("IMAGE", image, "OTHER", "sleep 1000").Replace(podsInStep))
	s.waitRunning(ending)
	if got := s.must("gexec", "--rank", "3", ending, "--", "sh", "-c", "hostname; cat /etc/hosts | grep -c mesh"); got != "step-3\n4\n" {
		t.Errorf("a command in rank 3 says %q", got)
	}
	s.must("gcancel", ending)
	if d = s.wait(ending); d.State != job.Cancelled {
		t.Errorf("want it cancelled:\n%s", describe(d))
	}
	for i, r := range d.Attempts[0].Ranks {
		if r.Phase != "ended" {
			t.Errorf("rank %d is %s", i, r.Phase)
		}
	}
}
