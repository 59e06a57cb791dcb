package mix_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/sched/mix"
	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// TestLost puts ranks on a node with two GPUs and four cores, and measures what
// jobs of the mix lose there, in thousandths of a GPU.
func TestLost(t *testing.T) {
	one := spec.Shape{MilliGPU: 1000, MilliCPU: 1000}
	two := spec.Shape{MilliGPU: 2000, MilliCPU: 1000}
	for name, tc := range map[string]struct {
		mix    []spec.MixShape
		usable mix.Usable
		gpus   []int
		cpu    int64
		want   int64
	}{
		"both GPUs of a job of two": {mix: []spec.MixShape{{Shape: two, Weight: 1}}, usable: mix.Once, gpus: []int{0, 1}, cpu: 1000, want: 0},
		"one of two":                {mix: []spec.MixShape{{Shape: two, Weight: 1}}, usable: mix.Once, gpus: []int{0}, cpu: 1000, want: 1000},
		"one of two, by weight":     {mix: []spec.MixShape{{Shape: two, Weight: 3}, {Shape: one, Weight: 5}}, usable: mix.Once, gpus: []int{0}, cpu: 1000, want: 3000},
		"all cores":                 {mix: []spec.MixShape{{Shape: one, Weight: 1}}, usable: mix.Once, gpus: []int{1}, cpu: 4000, want: 1000},
		"the last job's cores":      {mix: []spec.MixShape{{Shape: one, Weight: 1}}, usable: mix.All, cpu: 3000, want: 1000},
		"cores that one job leaves": {mix: []spec.MixShape{{Shape: one, Weight: 1}}, usable: mix.Once, cpu: 3000, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			index := nodes.New()
			gpus := []spec.GPU{{UUID: "a", Model: "m"}, {UUID: "b", Model: "m"}}
			if err := index.Set(spec.Node{Name: "n", Cluster: 1, MilliCPU: 4000, MemMiB: 1024, GPUs: gpus, State: spec.Up}); err != nil {
				t.Fatal(err)
			}
			index.Refresh()
			var shapes mix.Mix
			m := mix.Meter{Mix: &shapes, Index: index, Policy: tc.mix, Usable: tc.usable}
			r := mix.Rank{Shape: index.Intern(&spec.Shape{MilliCPU: 500}), Node: index.Nodes["n"], CPU: tc.cpu, Milli: 1000}
			for _, g := range tc.gpus {
				r.GPUs.Add(g)
			}
			for range 2 { // the second answer is the one that was kept
				if diff := cmp.Diff(tc.want, m.Lost(r)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
			shapes.Drop(index)
			for _, s := range index.Shapes {
				if s.Refs > 0 {
					t.Errorf("the shape %s is kept after the mix was dropped", s.Key)
				}
			}
		})
	}
}
