package ctld

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

type clusterInput struct{}

// List shows the nodes.
type List struct {
	view    func() *state.View
	samples *samples
	skews   *skews
}

// All is all nodes, with what they do at the moment.
func (s *List) All(context.Context, *clusterInput) (*api.ClusterInfo, error) {
	v := s.view()
	out := api.ClusterInfo{Nodes: []api.Node{}}
	for _, n := range v.Nodes {
		node := wire.Node(v, n)
		s.samples.fill(&node)
		s.skews.fill(&node)
		out.Nodes = append(out.Nodes, node)
	}
	return &out, nil
}
