package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestTakeShare: cores and memory come with the GPUs, as much as each node that has
// them can give, and never less than what was asked for.
func TestTakeShare(t *testing.T) {
	gpus := func(n int, model string) []node.GPU {
		all := make([]node.GPU, n)
		for i := range all {
			all[i] = node.GPU{Model: model, MemBytes: 80 << 30}
		}
		return all
	}
	v := &state.View{Nodes: state.NodesOf(
		&state.Node{Name: "a", Inventory: state.Inventory{Inventory: node.Inventory{CPUs: 128, MemBytes: 1024 << 30, GPUs: gpus(8, "NVIDIA H100")}}},
		&state.Node{Name: "b", Inventory: state.Inventory{Inventory: node.Inventory{CPUs: 96, MemBytes: 2048 << 30, GPUs: gpus(8, "NVIDIA H100")}}},
		&state.Node{Name: "c", Inventory: state.Inventory{Inventory: node.Inventory{CPUs: 32, MemBytes: 128 << 30, GPUs: gpus(2, "NVIDIA A100")}}},
		&state.Node{Name: "d", Inventory: state.Inventory{Inventory: node.Inventory{CPUs: 500, MemBytes: 9000 << 30}}},
	)}
	tests := map[string]struct {
		ask, want job.Resources
		open      bool
	}{
		"whole nodes": {job.Resources{GPUs: 8, CPUs: 2, CPUMemoryGB: 8, GPUModel: []string{"h100"}}, job.Resources{GPUs: 8, CPUs: 96, CPUMemoryGB: 1024, GPUModel: []string{"h100"}}, true},
		"a part":      {job.Resources{GPUs: 2, CPUs: 2, CPUMemoryGB: 8, GPUModel: []string{"H100"}}, job.Resources{GPUs: 2, CPUs: 24, CPUMemoryGB: 256, GPUModel: []string{"H100"}}, true},
		"any model":   {job.Resources{GPUs: 1, CPUs: 2, CPUMemoryGB: 8}, job.Resources{GPUs: 1, CPUs: 12, CPUMemoryGB: 64}, true},
		"asks more":   {job.Resources{GPUs: 1, CPUs: 20, CPUMemoryGB: 100, GPUModel: []string{"A100"}}, job.Resources{GPUs: 1, CPUs: 20, CPUMemoryGB: 100, GPUModel: []string{"A100"}}, true},
		"no node":     {job.Resources{GPUs: 16, CPUs: 2, CPUMemoryGB: 8}, job.Resources{GPUs: 16, CPUs: 2, CPUMemoryGB: 8}, true},
		"does not":    {job.Resources{GPUs: 8, CPUs: 2, CPUMemoryGB: 8}, job.Resources{GPUs: 8, CPUs: 2, CPUMemoryGB: 8}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &job.Spec{Gbatch: &job.Gbatch{ShareOfNode: tc.open}}
			spec.Request.Resources = tc.ask
			notes := takeShare(v, spec)
			if diff := cmp.Diff(tc.want, spec.Request.Resources); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changed := tc.ask.CPUs != tc.want.CPUs; changed != (len(notes) == 1) || spec.Gbatch.ShareOfNode {
				t.Errorf("told %v", notes)
			}
		})
	}
}
