package control

import (
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

func (c *Controller) findNode(name string) (int, bool) {
	return slices.BinarySearchFunc(c.nodes, name, func(n *state.Node, s string) int { return strings.Compare(n.Name, s) })
}

func (c *Controller) node(name string) *state.Node {
	if i, ok := c.findNode(name); ok {
		return c.nodes[i]
	}
	return nil
}

// setNode replaces a node's value, or adds it. It is recorded when what is
// stored of it changed.
func (c *Controller) setNode(n state.Node) {
	i, ok := c.findNode(n.Name)
	c.nodes = slices.Clone(c.nodes) // a View may hold the old slice
	var old *state.Node
	if ok {
		old = c.nodes[i]
		c.nodes[i] = &n
	} else {
		c.nodes = slices.Insert(c.nodes, i, &n)
	}
	if !c.cfg.NoRecords {
		if v := state.Encode(n); old == nil || string(v) != string(state.Encode(old)) {
			c.record(state.Record{Kind: state.KindNode, Name: n.Name, Value: v})
		}
	}
	if old == nil || nodeDiffers(old, &n) {
		must(c.sched.SetNode(schedNode(&n))) // checked when the inventory came
		c.dirty = true
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
	c.versions++
	n.Version = c.epoch<<32 | c.versions
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
