package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// nodes is the nodes, sorted by name, and how often their desired sets were
// changed. Values are immutable, and so is a list that a View may hold.
type nodes struct {
	list     []*state.Node
	epoch    uint64 // of this start; makes versions of desired sets grow over restarts
	versions uint64 // of desired sets, in this epoch
}

func (t *nodes) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t.list, name, func(n *state.Node, s string) int { return strings.Compare(n.Name, s) })
}

func (t *nodes) get(name string) *state.Node {
	if i, ok := t.find(name); ok {
		return t.list[i]
	}
	return nil
}

// put replaces a node's value, or adds it; old is nil then.
func (t *nodes) put(n *state.Node) (old *state.Node) {
	i, ok := t.find(n.Name)
	t.list = slices.Clone(t.list)
	if !ok {
		t.list = slices.Insert(t.list, i, n)
		return nil
	}
	old, t.list[i] = t.list[i], n
	return old
}

func (t *nodes) remove(name string) {
	if i, ok := t.find(name); ok {
		t.list = slices.Delete(slices.Clone(t.list), i, i+1)
	}
}

// version is a new one for a desired set.
func (t *nodes) version() uint64 {
	t.versions++
	return t.epoch<<32 | t.versions
}

// names is all names, for people.
func (t *nodes) names() string {
	var names []string
	for _, n := range t.list {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

func (t *nodes) check() error {
	if !slices.IsSortedFunc(t.list, func(a, b *state.Node) int { return strings.Compare(a.Name, b.Name) }) {
		return fmt.Errorf("nodes %s are not in order", t.names())
	}
	return nil
}

func (c *Controller) node(name string) *state.Node { return c.nodes.get(name) }

// setNode replaces a node's value, or adds it. It is recorded when what is
// stored of it changed.
func (c *Controller) setNode(n state.Node) {
	old := c.nodes.put(&n)
	if !c.cfg.NoRecords {
		if v := state.Encode(n); old == nil || string(v) != string(state.Encode(old)) {
			c.out.record(state.Record{Kind: state.KindNode, Name: n.Name, Value: v})
		}
	}
	if old == nil || nodeDiffers(old, &n) {
		must(c.queue.sched.SetNode(schedNode(&n))) // checked when the inventory came
		c.queue.due = true
	}
}

// nodeDiffers says whether a decision may turn out differently.
func nodeDiffers(a, b *state.Node) bool {
	as, _ := a.State()
	bs, _ := b.State()
	return as != bs || a.Hash != b.Hash || !maps.Equal(a.DrainedGPUs, b.DrainedGPUs)
}

// wake gives a node's desired set a new version.
func (c *Controller) wake(name string) {
	n := *c.node(name)
	n.Version = c.nodes.version()
	c.setNode(n)
	c.out.Wake = append(c.out.Wake, name)
}

func (c *Controller) wakeNodesOf(j *state.Job) {
	for _, r := range j.Attempt.Ranks {
		if r.Phase != node.PhaseEnded {
			c.wake(r.Alloc.Node)
		}
	}
}

// arrive and leave keep the list of jobs with live ranks on a node.
func (c *Controller) arrive(name string, n job.Number) {
	v := *c.node(name)
	if !slices.Contains(v.Jobs, n) {
		v.Jobs = append(slices.Clip(v.Jobs), n)
		c.setNode(v)
	}
	c.wake(name)
}

func (c *Controller) leave(name string, n job.Number) {
	v := *c.node(name)
	if i := slices.Index(v.Jobs, n); i >= 0 {
		v.Jobs = slices.Delete(slices.Clone(v.Jobs), i, i+1)
		c.setNode(v)
	}
	c.wake(name)
}

func schedNode(n *state.Node) sched.Node {
	inv := n.Inventory
	s := sched.Node{
		Name: n.Name, Cluster: inv.Cluster, MilliCPU: int64(inv.CPUs) * 1000, MemMiB: inv.MemBytes >> 20,
		DiskMiB: inv.DiskBytes >> 20, CUDA: inv.CUDA, Features: slices.Concat(inv.Features, networks(inv)), AllowShare: inv.AllowShare,
	}
	state, reason := n.State()
	switch state {
	case "up":
		s.State = sched.Up
	case "lost", "suspect":
		s.State = sched.Down
	default:
		s.State = sched.Drained
	}
	s.Reason = reason
	for _, g := range inv.GPUs {
		out := n.OutOfService(g)
		s.GPUs = append(s.GPUs, sched.GPU{
			UUID: g.UUID, Model: g.Model, MemMiB: g.MemBytes >> 20, ComputeCap: g.ComputeCap, NUMA: g.NUMA,
			Links: g.Links, Drained: out != "", Reason: out,
		})
	}
	return s
}
