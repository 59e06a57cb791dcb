package sched

import (
	"fmt"

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
		f := kind.Shape.On(n.Kind)
		v := NodeReason{Node: n.Name, FreeCPU: max(n.CPUFree, 0), FreeMem: max(n.MemFree, 0)}
		for g := f.GPUs.Next(0); g >= 0; g = f.GPUs.Next(g + 1) {
			if n.Usable.Has(g) {
				v.FreeGPUs += WholeGPU - int64(n.Used[g])
			}
		}
		v.Code, v.Text = ex.onNode(n, kind, f)
		if v.Code != CodeNever && n.Open() {
			if at := ex.calendar.earliestOn(n, kind, ex.now); at < Never {
				v.At = at
			}
		}
		out = append(out, v)
	}
	return out
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
	case f.Away != "" && n.Open():
		return CodeResources, n.AwayText(f.Away)
	case !n.Open():
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
		b := ex.calendar.timeline(n).booked[0]
		return CodePriority, fmt.Sprintf("is planned for job %d in %s", b.job, words.Span(b.start-ex.now))
	}
	l := n.Lack(shape, f)
	return CodeResources, l.Words(shape)
}

// nodeCounts is how many nodes a rank finds in which condition. It is numbers only:
// the words are made when somebody asks.
type nodeCounts struct {
	nodes  int        // could hold it if nothing else were on them
	room   int        // have room, whatever was planned
	shut   int        // have room, and a window keeps it off
	window string     // the first of these, by name
	closed int        // drained or down
	free   int64      // GPU thousandths that are free for it, or cores, of those that have no room
	near   nodes.Lack // of these, the node with the most

	storage []nodes.StorageCount // where the storage is that the job needs
	all     int                  // nodes that there are, where storage was counted
}

// countNodes by what is held on the nodes.
func countNodes(index *nodes.Index, kind *jobKind, now Time) nodeCounts {
	out := nodeCounts{near: nodes.Lack{Free: -1}}
	out.storage, out.all = index.CountStorage(kind.Shape)
	for _, nodeKind := range index.Order {
		f := kind.Shape.On(nodeKind)
		if !f.OK {
			continue
		}
		for _, n := range nodeKind.Nodes {
			if n.Gone || !kind.Shape.Named(n) {
				continue
			}
			out.nodes++
			if !n.Open() {
				out.closed++
				continue
			}
			if f.Away != "" {
				continue // see storage
			}
			if _, ok := n.Room(kind.Shape, f); !ok {
				free := n.FreeFor(kind.Shape, f)
				out.free += free
				if free > out.near.Free || free == out.near.Free && n.Name < out.near.Node {
					out.near = n.Lack(kind.Shape, f)
				}
				continue
			}
			if w := n.ShutBy(&kind.Request, f, now); w == nil {
				out.room++
			} else if out.shut++; out.window == "" || w.Name < out.window {
				out.window = w.Name
			}
		}
	}
	return out
}

// resourcesText is what is not free, and where there is most of it.
func (c *nodeCounts) resourcesText(shape *nodes.Shape) string {
	text := "needs " + shape.Text()
	if ranks := shape.Ranks(); ranks > 1 {
		text += fmt.Sprintf("; %d of %d nodes have room", c.room, ranks)
	}
	if c.near.Node != "" {
		text += fmt.Sprintf("; nearest is %s: %s", c.near.Node, c.near.Words(shape))
	}
	if shape.MilliGPU > 0 && !shape.Share() && c.nodes > 1 {
		text += fmt.Sprintf("; %s free on all %d nodes that could hold it", words.Plural(int(c.free/WholeGPU), "GPU"), c.nodes)
	}
	for _, s := range c.storage {
		if where := s.Words(c.all); where != "" {
			text += "; " + where
		}
	}
	switch {
	case c.closed == 1 && c.nodes == 1:
		text += "; the one node that could hold it is drained or down"
	case c.closed == c.nodes:
		text += fmt.Sprintf("; all %d nodes that could hold it are drained or down", c.nodes)
	case c.closed > 0:
		text += fmt.Sprintf("; %d of %d nodes that could hold it are drained or down", c.closed, c.nodes)
	}
	return text
}
