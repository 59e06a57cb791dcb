package sched

import (
	"fmt"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// census is how many nodes a rank finds in which condition. It is numbers only:
// the words are made when somebody asks.
type census struct {
	nodes  int        // could hold it if nothing else were on them
	room   int        // have room, whatever was planned
	shut   int        // have room, and a window keeps it off
	window string     // the first of these, by name
	closed int        // drained or down
	free   int64      // GPU thousandths that are free for it, or cores, of those that have no room
	near   nodes.Lack // of these, the node with the most
}

// census by what is held on the nodes.
func (r *round) census(k *jobKind) census {
	out := census{near: nodes.Lack{Free: -1}}
	for _, nk := range r.s.index.Order {
		f := k.Shape.On(nk)
		if !f.OK {
			continue
		}
		for _, n := range nk.Nodes {
			if n.Gone || !k.Shape.Named(n) {
				continue
			}
			out.nodes++
			if !n.Open() {
				out.closed++
				continue
			}
			if _, ok := n.Room(k.Shape, f); !ok {
				free := n.FreeFor(k.Shape, f)
				out.free += free
				if free > out.near.Free || free == out.near.Free && n.Name < out.near.Node {
					out.near = n.Lack(k.Shape, f)
				}
				continue
			}
			if w := n.ShutBy(&k.Request, f, r.now); w == nil {
				out.room++
			} else if out.shut++; out.window == "" || w.Name < out.window {
				out.window = w.Name
			}
		}
	}
	return out
}

// resourcesText is what is not free, and where there is most of it.
func (c *census) resourcesText(x *nodes.Shape) string {
	text := "needs " + x.Text()
	if ranks := x.Ranks(); ranks > 1 {
		text += fmt.Sprintf("; %d of %d nodes have room", c.room, ranks)
	}
	if c.near.Node != "" {
		text += fmt.Sprintf("; nearest is %s: %s", c.near.Node, c.near.Words(x))
	}
	if x.MilliGPU > 0 && !x.Share() && c.nodes > 1 {
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
