package sched

import (
	"fmt"
	"strings"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// nodes is the per-node table of an explanation, as the plan leaves the nodes.
func (ex *explainer) nodes(e *entry) []NodeReason {
	out := make([]NodeReason, 0, len(ex.s.index.Sorted))
	kind := e.class.kind
	for _, n := range ex.s.index.Sorted {
		if n.Gone {
			continue
		}
		if len(kind.Shape.Groups) == 0 {
			out = append(out, ex.onNodeAt(n, kind, e))
		} else {
			out = append(out, ex.groupsOn(n, kind, e))
		}
	}
	return out
}

// groupsOn is what the group that is nearest to a start finds on a node, and in words what
// each finds that could be there.
func (ex *explainer) groupsOn(n *nodes.Node, kind *jobKind, e *entry) (best NodeReason) {
	var could []string
	for i, g := range kind.groups() {
		v := ex.onNodeAt(n, g, e)
		if len(kind.Shape.Groups) > 1 {
			v.Text = fmt.Sprintf("group %d: %s", i, v.Text)
		}
		if v.Code != CodeNever {
			could = append(could, v.Text)
		}
		if i == 0 || v.nearer(best) {
			best = v
		}
	}
	if len(could) > 0 {
		best.Text = strings.Join(could, "; ")
	}
	return best
}

// nearer says whether one thing that a rank finds is nearer to a start than another.
func (v NodeReason) nearer(than NodeReason) bool {
	return than.Code != "" && (v.Code == "" || codeOrder(v.Code) > codeOrder(than.Code))
}

// onNodeAt is what a rank finds on a node, and when it can have room there.
func (ex *explainer) onNodeAt(n *nodes.Node, kind *jobKind, e *entry) NodeReason {
	f := kind.Shape.On(n.Kind)
	v := NodeReason{Node: n.Name, FreeCPU: max(n.CPUFree, 0), FreeMem: max(n.MemFree, 0)}
	for g := f.GPUs.Next(0); g >= 0; g = f.GPUs.Next(g + 1) {
		if n.Usable.Has(g) {
			v.FreeGPUs += WholeGPU - int64(n.Used[g])
		}
	}
	v.Code, v.Text = ex.onNode(n, kind, f)
	if v.Code == CodeNever || !n.TakesJobs() {
		return v
	}
	if at := ex.calendar.earliestOn(n, kind, ex.now); at < Never {
		v.At = at
	}
	for _, b := range ex.calendar.timeline(n).Booked {
		if b.Job == e.id { // its own place is not in its way
			v.At = b.Start
		}
	}
	return v
}

// onNode is the first thing that keeps a rank off a node.
func (ex *explainer) onNode(n *nodes.Node, kind *jobKind, f nodes.Fit) (Code, string) {
	shape := kind.Shape
	switch {
	case len(kind.ways) == 0:
		return CodePartition, ex.s.downText(shape)
	case !shape.Named(n):
		if shape.Never[n.Folded] {
			return CodeNever, "is excluded by the job"
		}
		return CodeNever, "has another name than the job asks for"
	case !f.OK:
		return CodeNever, n.MisfitText(shape, f.Why)
	case f.Away != "" && n.TakesJobs():
		return CodeResources, n.AwayText(f.Away)
	case !n.TakesJobs():
		text := string(n.State)
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		return CodeResources, text
	}
	if w := n.Closed(&kind.Request, ex.now); w != nil {
		return CodeReservation, words.Window(w, ex.now)
	}
	if _, ok := n.Room(shape, f); ok {
		if w := n.ShutBy(&kind.Request, f, ex.now); w != nil {
			return CodeReservation, words.Window(w, ex.now)
		}
		if _, ok := ex.roomNow(n, kind, f); ok {
			return "", "has room now"
		}
		b := ex.calendar.timeline(n).Booked[0]
		return CodePriority, fmt.Sprintf("is planned for job %d in %s", b.Job, words.Span(b.Start-ex.now))
	}
	l := n.Lack(shape, f)
	return CodeResources, l.Words(shape)
}
