package sched

import (
	"fmt"

	"gbatch/sched/words"
)

// nodes is the per-node table of an explanation, as the plan leaves the nodes.
func (x *explainer) nodes(e *entry) []NodeVerdict {
	out := make([]NodeVerdict, 0, len(x.s.index.sorted))
	k := e.class.kind
	for _, n := range x.s.index.sorted {
		if n.gone {
			continue
		}
		f := k.shape.on(n.kind)
		v := NodeVerdict{Node: n.Name, FreeCPU: max(n.cpuFree, 0), FreeMem: max(n.memFree, 0)}
		for g := f.gpus.next(0); g >= 0; g = f.gpus.next(g + 1) {
			if n.usable.has(g) {
				v.FreeGPUs += WholeGPU - int64(n.used[g])
			}
		}
		v.Code, v.Text = x.onNode(n, k, f)
		if v.Code != CodeNever && n.open() {
			if at := x.earliestOn(n, k, x.now); at < Never {
				v.At = at
			}
		}
		out = append(out, v)
	}
	return out
}

// onNode is the first thing that keeps a rank off a node.
func (x *explainer) onNode(n *node, k *jobKind, f fit) (Code, string) {
	s := k.shape
	switch {
	case !s.named(n):
		if s.never[n.folded] {
			return CodeNever, "is excluded by the job"
		}
		return CodeNever, "has another name than the job asks for"
	case !f.ok:
		return CodeNever, n.misfitText(s, f.why)
	case !n.open():
		text := string(n.State)
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		return CodeResources, text
	}
	if w := n.closed(&k.request, x.now); w != nil {
		return CodeReservation, windowText(w, x.now)
	}
	if _, ok := n.room(s, f); ok {
		if w := n.shutBy(&k.request, f, x.now); w != nil {
			return CodeReservation, windowText(w, x.now)
		}
		if _, ok := x.roomNow(n, k, f); ok {
			return "", "has room now"
		}
		b := x.timeline(n).booked[0]
		return CodePriority, fmt.Sprintf("is planned for job %d in %s", b.job, words.Span(b.start-x.now))
	}
	l := n.lack(s, f)
	return CodeResources, l.words(s)
}
