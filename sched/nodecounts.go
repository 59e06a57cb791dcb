package sched

import (
	"fmt"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

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
}

// countNodes by what is held on the nodes.
func countNodes(index *nodes.Index, kind *jobKind, now Time) nodeCounts {
	out := nodeCounts{near: nodes.Lack{Free: -1}}
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
