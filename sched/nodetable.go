package sched

import (
	"fmt"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// nodes is the per-node table of an explanation, as the plan leaves the nodes.
func (x *explainer) nodes(e *entry) []NodeVerdict {
	out := make([]NodeVerdict, 0, len(x.s.index.Sorted))
	k := e.class.kind
	for _, n := range x.s.index.Sorted {
		if n.Gone {
			continue
		}
		f := k.Shape.On(n.Kind)
		v := NodeVerdict{Node: n.Name, FreeCPU: max(n.CPUFree, 0), FreeMem: max(n.MemFree, 0)}
		for g := f.GPUs.Next(0); g >= 0; g = f.GPUs.Next(g + 1) {
			if n.Usable.Has(g) {
				v.FreeGPUs += WholeGPU - int64(n.Used[g])
			}
		}
		v.Code, v.Text = x.onNode(n, k, f)
		if v.Code != CodeNever && n.Open() {
			if at := x.earliestOn(n, k, x.now); at < Never {
				v.At = at
			}
		}
		out = append(out, v)
	}
	return out
}

// onNode is the first thing that keeps a rank off a node.
func (x *explainer) onNode(n *nodes.Node, k *jobKind, f nodes.Fit) (Code, string) {
	s := k.Shape
	switch {
	case !s.Named(n):
		if s.Never[n.Folded] {
			return CodeNever, "is excluded by the job"
		}
		return CodeNever, "has another name than the job asks for"
	case !f.OK:
		return CodeNever, n.MisfitText(s, f.Why)
	case !n.Open():
		text := string(n.State)
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		return CodeResources, text
	}
	if w := n.Closed(&k.Request, x.now); w != nil {
		return CodeReservation, windowText(w, x.now)
	}
	if _, ok := n.Room(s, f); ok {
		if w := n.ShutBy(&k.Request, f, x.now); w != nil {
			return CodeReservation, windowText(w, x.now)
		}
		if _, ok := x.roomNow(n, k, f); ok {
			return "", "has room now"
		}
		b := x.timeline(n).booked[0]
		return CodePriority, fmt.Sprintf("is planned for job %d in %s", b.job, words.Span(b.start-x.now))
	}
	l := n.Lack(s, f)
	return CodeResources, l.Words(s)
}
