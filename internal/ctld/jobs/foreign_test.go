package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

func TestDropForeign(t *testing.T) {
	v := &state.View{Nodes: state.NodesOf(&state.Node{Name: "a", Inventory: state.Inventory{Inventory: node.Inventory{Features: []string{"region=eu", "ssd"}}}})}
	spec := func(source string) *job.Spec {
		return &job.Spec{Gbatch: &job.Gbatch{Source: source, AnyFeatures: [][]string{{"backend=aws", "backend=gcp"}, {"region=us"}, {"ssd", "nvme"}}}}
	}
	s := spec("dstack")
	notes := dropForeign(v, s)
	want := []job.Note{{Path: "gbatch.anyFeatures[0]", Message: "backend=aws or backend=gcp is not asked of nodes: none here has a feature backend="}}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"region=us"}, {"ssd", "nvme"}}, s.Gbatch.AnyFeatures); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if s = spec(""); dropForeign(v, s) != nil || len(s.Gbatch.AnyFeatures) != 3 {
		t.Error("a native job lost a constraint")
	}
	if s = spec("dstack"); dropForeign(&state.View{}, s) != nil || len(s.Gbatch.AnyFeatures) != 3 {
		t.Error("a constraint was dropped before any node was known")
	}
}
