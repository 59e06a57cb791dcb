package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestGPUs grants simulated GPUs: whole ones, all of a node, by model. No GPU
// is given twice.
func TestGPUs(t *testing.T) {
	s := newSite(t, siteOptions{nodeConfig: "gpu: {simulate: \"h100:4\"}\n"})
	one := s.submit(doc{name: "one", gpus: 1, resources: map[string]any{"gpuModel": []string{"A100", "h100"}, "gpuMemoryGb": 70},
		command: sh("echo $GPULAB_GPUS_RESERVED $GBATCH_GPU_UUIDS $GBATCH_NUM_GPUS $SLURM_JOB_GPUS; trap 'exit 0' TERM; sleep 1000 & wait")})
	two := s.submit(doc{name: "two", gpus: 2, command: idle})
	all := s.submit(doc{name: "all", gpus: -1, command: []string{"true"}})
	granted := map[string]int64{}
	for id, want := range map[string]float64{one: 1, two: 2} {
		d := s.waitRunning(id)
		if d.GPUs != want {
			t.Errorf("%s has %v GPUs, want %v", d.Name, d.GPUs, want)
		}
		for _, g := range d.Attempts[0].Ranks[0].GPUs {
			granted[g.UUID] += g.Milli
		}
	}
	for uuid, milli := range granted {
		if milli > 1000 {
			t.Errorf("GPU %s is given %d thousandths", uuid, milli)
		}
	}
	if st := s.job(all).State; st != job.Queued {
		t.Errorf("the job that wants all GPUs is %s", st)
	}
	gpu := s.job(one).Attempts[0].Ranks[0].GPUs[0]
	index := slices.IndexFunc(s.node(0).GPUs, func(g api.GPU) bool { return g.UUID == gpu.UUID })
	eventually(t, "the job says what it sees", func() bool { return s.run("glog", one).out != "" })
	if diff := cmp.Diff(fmt.Sprintf("%d %s 1 %d\n", index, gpu.UUID, index), s.must("glog", one)); diff != "" {
		t.Errorf("what the job sees (-want +got):\n%s", diff)
	}
	if out := s.must("ginfo"); !strings.Contains(out, "simulated") {
		t.Errorf("ginfo does not say that the GPUs are simulated:\n%s", out)
	}
	eventually(t, "the GPUs' work is known", func() bool { return s.node(0).GPUs[index].Utilization != nil })
	if out := s.must("ginfo", "--gpus"); !strings.Contains(out, "0%") {
		t.Errorf("ginfo --gpus does not say how busy the GPUs are:\n%s", out)
	}
	s.must("gcancel", one, two)
	if d := s.wait(all); endOf(d) != finished || d.GPUs != 4 {
		t.Errorf("the job with all GPUs had %v:\n%s", d.GPUs, describe(d))
	}
	r := s.run("gsubmit", s.write(doc{gpus: 5}.json()))
	if r.code != 6 || !strings.Contains(r.err, "4") || !strings.Contains(r.err, s.nodeName(0)) {
		t.Errorf("more GPUs than the largest node has: %v", r)
	}
}

// node is what the controller knows of a node.
func (s *site) node(i int) api.Node {
	s.t.Helper()
	info, err := s.api.Cluster(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	at := slices.IndexFunc(info.Nodes, func(n api.Node) bool { return n.Name == s.nodeName(i) })
	if at < 0 {
		s.t.Fatalf("there is no node %s", s.nodeName(i))
	}
	return info.Nodes[at]
}
