package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gbatch/internal/control/reboot"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Drain takes a node, or one GPU of it, out of scheduling; what runs there goes
// on. An empty Reason puts it back; with Reboot, only as far as an order to reboot
// has taken it out.
type Drain struct {
	Node   string
	GPU    string // UUID, or its beginning, or index; empty: the node
	Reason string
	By     string

	Evict   bool       // what runs there has to leave
	EvictAt sched.Time // with Evict: then; 0: now
	Reboot  bool       // the machine is rebooted when it is empty
}

// drained answers Drain.
type drained struct {
	Was     string // the reason for which the node was drained before; of a GPU it is empty
	Evicted []Evicted
	Jobs    int // that are on the node still, of a whole one
}

func (e Drain) apply(s *step) (drained, *state.Refusal) {
	old := s.nodes.get(e.Node)
	if old == nil {
		return drained{}, s.nodes.noNode(e.Node)
	}
	s.nodes.by = e.By
	n := *old
	reason := e.Reason
	if reason != "" && e.By != "" {
		reason += " (" + e.By + ")"
	}
	switch {
	case e.GPU != "":
	case reason == "" && e.Reboot:
		return drained{Was: n.Drained}, e.notReboot(s, n)
	default:
		return e.whole(s, n, reason), nil
	}
	uuid, refusal := old.FindGPU(e.GPU)
	if refusal != nil {
		return drained{}, refusal
	}
	n.DrainedGPUs = maps.Clone(old.DrainedGPUs)
	if n.DrainedGPUs == nil {
		n.DrainedGPUs = map[string]string{}
	}
	if reason == "" {
		delete(n.DrainedGPUs, uuid)
	} else {
		n.DrainedGPUs[uuid] = reason
	}
	s.nodes.set(n)
	return drained{Evicted: e.evict(s, func(r state.Rank) bool {
		return r.Alloc.Node == e.Node && slices.ContainsFunc(r.Alloc.GPUs, func(g sched.GPUShare) bool { return g.UUID == uuid })
	})}, nil
}

// whole drains a node as a whole, or puts it back.
func (e Drain) whole(s *step, n state.Node, reason string) drained {
	was := n.Drained
	n.Drained = reason
	switch {
	case reason == "":
		n.Trouble = nil // the operator says that it is fit
		n.Reboot, n.EvictAt = nil, 0
	case e.Reboot:
		n = reboot.Order(n, s.nodes.version(), e.By, was)
	}
	if e.Evict && e.EvictAt > s.now {
		n.EvictAt = e.EvictAt
	}
	s.nodes.set(n)
	out := drained{Was: was, Evicted: e.evict(s, func(r state.Rank) bool { return r.Alloc.Node == e.Node })}
	s.nodes.stepReboot(e.Node)
	out.Jobs = len(s.nodes.get(e.Node).Jobs)
	return out
}

// notReboot takes an order to reboot back, and the drain that came with it.
func (e Drain) notReboot(s *step, n state.Node) *state.Refusal {
	switch {
	case n.Reboot == nil:
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is not to be rebooted", n.Name)}
	case n.Reboot.Sent > 0 && !n.Reboot.Overdue():
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s was told to reboot already", n.Name), Hint: "it takes jobs again when it is back"}
	}
	s.nodes.set(reboot.Cancel(n))
	return nil
}

// evict has the jobs leave now whose ranks match.
func (e Drain) evict(s *step, match func(state.Rank) bool) []Evicted {
	if !e.Evict || e.EvictAt > s.now {
		return nil
	}
	what := e.Node
	if e.GPU != "" {
		what = fmt.Sprintf("GPU %s of %s", e.GPU, e.Node)
	}
	return s.evict(e.Node, fmt.Sprintf("%s is drained: %s (%s)", what, e.Reason, e.By), match)
}

func (e Drain) audit(a drained) Audit {
	object := "node " + e.Node
	if e.GPU != "" {
		object += " GPU " + e.GPU
	}
	change := fmt.Sprintf("drained: %q -> %q", a.Was, e.Reason)
	if e.Reboot {
		change += "; to be rebooted"
	}
	if e.Evict && e.EvictAt > 0 {
		change += "; jobs have until " + time.UnixMilli(int64(e.EvictAt)).UTC().Format(time.RFC3339)
	}
	for _, j := range a.Evicted {
		change += fmt.Sprintf("; job %s of %s %s", j.ID, j.User, j.What)
	}
	return Audit{Object: object, Change: change}
}
