package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/sched"
)

// TestUnstarted: a replay says which jobs never started, and why.
func TestUnstarted(t *testing.T) {
	job := func(name string, gpus int64) Job {
		return Job{Name: name, User: "ann", Project: "a", Run: sched.Hour, Limit: sched.Hour, Shape: &sched.Shape{MilliGPU: gpus * sched.WholeGPU, Nodes: 1}}
	}
	w := workload{Jobs: []Job{job("fits", 2), job("large", 3), job("larger", 3)}}
	cfg, res, err := Options{Policy: "gbatch", Estimates: "user"}.Replay(w, gpuNodes(1, 2, "H100"), Watch{})
	if err != nil {
		t.Fatal(err)
	}
	rep := NewReport(cfg, res)
	for i := range rep.Unstarted {
		if rep.Unstarted[i].Why == "" {
			t.Error("there is no reason")
		}
		rep.Unstarted[i].Why = ""
	}
	if diff := cmp.Diff([]Unstarted{{Jobs: 2, First: []string{"large", "larger"}}}, rep.Unstarted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
