package nodes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control/partition"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

type clusterInput struct {
	Text   string `query:"text" maxLength:"200" doc:"words that all are in a node's name, state, reason, features, partitions and GPU models"`
	Model  string `query:"model" doc:"only nodes with GPUs of this model"`
	Worst  bool   `query:"worst" doc:"those that somebody has to look at first, and by cluster; else by name"`
	Offset int    `query:"offset" minimum:"0" doc:"nodes to leave out at the beginning"`
	Limit  int    `query:"limit" minimum:"0" doc:"at most so many nodes; of the cluster then without the partitions"`
	MaxAge int    `query:"maxAge" minimum:"0" maximum:"60" doc:"seconds that the answer may be old, which spares the controller work"`
}

// List shows the nodes.
type List struct {
	Conf    func() *site.Config
	Rights  *access.Rights
	View    func() *state.View
	Samples *samples.Samples
	Skews   *samples.Skews
	Now     func() time.Time

	pictures jobstore.Made[*pictured]
}

// All is all nodes, or some of them, with what they do at the moment.
func (s *List) All(ctx context.Context, in *clusterInput) (*api.ClusterInfo, error) {
	p := s.picture(time.Duration(in.MaxAge) * time.Second)
	found := p.find(in)
	out := summary(found)
	out.Models = p.models
	found = found[min(in.Offset, len(found)):]
	if in.Limit > 0 {
		found = found[:min(in.Limit, len(found))]
	} else {
		out.Partitions = s.partitions(p.view, s.Rights.Closed(access.Caller(ctx)))
		out.Licenses = s.licenses(p.view)
	}
	out.Nodes = make([]api.Node, 0, len(found))
	for _, n := range found {
		node := *n
		node.GPUs, node.Storage = slices.Clone(n.GPUs), slices.Clone(n.Storage)
		s.Samples.Fill(&node)
		s.Skews.Fill(&node)
		out.Nodes = append(out.Nodes, node)
	}
	return out, nil
}

// picture is the nodes of the newest view, or of one that was that less than age ago.
func (s *List) picture(age time.Duration) *pictured {
	return s.pictures.Of(s.View(), s.Now(), age, picture)
}

// pictured is the nodes of a view as they are told, in two orders. It never changes.
type pictured struct {
	view          *state.View
	byName, worst []*api.Node
	models        []string
}

func picture(v *state.View) *pictured {
	p := &pictured{view: v}
	for n := range v.Nodes.All() {
		node := wire.Node(v, n)
		p.byName = append(p.byName, &node)
		for _, g := range node.GPUs {
			if i, ok := slices.BinarySearch(p.models, g.Model); !ok {
				p.models = slices.Insert(p.models, i, g.Model)
			}
		}
	}
	p.worst = slices.Clone(p.byName)
	slices.SortStableFunc(p.worst, func(a, b *api.Node) int {
		return cmp.Or(cmp.Compare(wellness(a), wellness(b)), cmp.Compare(a.Cluster, b.Cluster))
	})
	return p
}

// wellness is lower for what somebody has to look at.
func wellness(n *api.Node) int {
	switch {
	case n.State != "up":
		return 0
	case slices.ContainsFunc(n.GPUs, func(g api.GPU) bool { return g.Unhealthy != "" }):
		return 1
	}
	return 2
}

func (p *pictured) find(in *clusterInput) []*api.Node {
	list := p.byName
	if in.Worst {
		list = p.worst
	}
	words := strings.Fields(strings.ToLower(in.Text))
	if in.Model == "" && len(words) == 0 {
		return list
	}
	var found []*api.Node
	for _, n := range list {
		if (in.Model == "" || slices.ContainsFunc(n.GPUs, func(g api.GPU) bool { return g.Model == in.Model })) && says(n, words) {
			found = append(found, n)
		}
	}
	return found
}

func says(n *api.Node, words []string) bool {
	if len(words) == 0 {
		return true
	}
	parts := slices.Concat([]string{n.Name, n.State, n.Reason}, n.Features, n.Partitions)
	for _, g := range n.GPUs {
		parts = append(parts, g.Model, g.Unhealthy)
	}
	text := strings.ToLower(strings.Join(parts, " "))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// summary counts nodes and GPUs.
func summary(nodes []*api.Node) *api.ClusterInfo {
	out := api.ClusterInfo{Total: len(nodes)}
	for _, n := range nodes {
		out.NumGPUs += len(n.GPUs)
		for i := range n.GPUs {
			if g := &n.GPUs[i]; n.State == "up" && g.FreeMilli == 1000 && g.Unhealthy == "" {
				out.NumFreeGPUs++
			}
		}
	}
	return &out
}

// partitions are those of the rules, in their order, then those that nodes name alone.
func (s *List) partitions(v *state.View, closed []string) (list []api.Partition) {
	for _, p := range s.Conf().Partitions {
		out := site.PartitionToAPI(p)
		out.Closed = slices.Contains(closed, p.Name)
		list = append(list, out)
	}
	for n := range v.Nodes.All() {
		for _, name := range n.Partitions {
			i := slices.IndexFunc(list, func(p api.Partition) bool { return p.Name == name })
			if i < 0 {
				i = len(list)
				list = append(list, api.Partition{Name: name, State: string(partition.Up)})
			}
			list[i].Nodes = append(list[i].Nodes, n.Name)
		}
	}
	return list
}

// One is a node and what became of it lately.
func (s *List) One(_ context.Context, in *nodeName) (*api.NodeDetail, error) {
	v := s.View()
	n := v.Node(in.Name)
	if n == nil {
		return nil, api.Errorf(api.CodeNotFound, "there is no node %q", in.Name).WithHint("ginfo lists them")
	}
	out := api.NodeDetail{Node: wire.Node(v, n), Past: []api.NodeChange{}}
	s.Samples.Fill(&out.Node)
	s.Skews.Fill(&out.Node)
	for _, c := range n.Past {
		out.Past = append(out.Past, api.NodeChange{Time: wire.Time(c.At), State: c.State, Text: c.Text, Reason: c.Reason, By: c.By})
	}
	return &out, nil
}
