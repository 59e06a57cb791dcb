package nodes

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

type clusterInput struct{}

// List shows the nodes.
type List struct {
	View    func() *state.View
	Samples *samples.Samples
	Skews   *samples.Skews
}

// All is all nodes, with what they do at the moment.
func (s *List) All(context.Context, *clusterInput) (*api.ClusterInfo, error) {
	v := s.View()
	out := api.ClusterInfo{Nodes: []api.Node{}}
	for _, n := range v.Nodes {
		node := wire.Node(v, n)
		s.Samples.Fill(&node)
		s.Skews.Fill(&node)
		out.Nodes = append(out.Nodes, node)
	}
	return &out, nil
}
