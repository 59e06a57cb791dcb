package ctld

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/control"
)

type clusterInput struct{}

// nodeList shows the nodes.
type nodeList struct {
	view    func() *control.View
	samples *samples
	skews   *skews
}

// cluster is all nodes, with what they do at the moment.
func (s *nodeList) cluster(context.Context, *clusterInput) (*api.ClusterInfo, error) {
	v := s.view()
	out := api.ClusterInfo{Nodes: []api.Node{}}
	for _, n := range v.Nodes {
		node := nodeToAPI(v, n)
		s.samples.fill(&node)
		s.skews.fill(&node)
		out.Nodes = append(out.Nodes, node)
	}
	return &out, nil
}
