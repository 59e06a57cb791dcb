package sched

import (
	"fmt"

	"gbatch/sched/words"
)

// census is how many nodes a rank finds in which condition. It is numbers only:
// the words are made when somebody asks.
type census struct {
	nodes  int    // could hold it if nothing else were on them
	room   int    // have room, whatever was planned
	shut   int    // have room, and a window keeps it off
	window string // the first of these, by name
	closed int    // drained or down
	free   int64  // GPU thousandths that are free for it, or cores, of those that have no room
	near   lack   // of these, the node with the most
}

// census by what is held on the nodes.
func (r *round) census(k *jobKind) census {
	out := census{near: lack{free: -1}}
	for _, nk := range r.s.index.order {
		f := k.shape.on(nk)
		if !f.ok {
			continue
		}
		for _, n := range nk.nodes {
			if n.gone || !k.shape.named(n) {
				continue
			}
			out.nodes++
			if !n.open() {
				out.closed++
				continue
			}
			if _, ok := n.room(k.shape, f); !ok {
				free := n.freeFor(k.shape, f)
				out.free += free
				if free > out.near.free || free == out.near.free && n.Name < out.near.node {
					out.near = n.lack(k.shape, f)
				}
				continue
			}
			if w := n.shutBy(&k.request, f, r.now); w == nil {
				out.room++
			} else if out.shut++; out.window == "" || w.Name < out.window {
				out.window = w.Name
			}
		}
	}
	return out
}

// resourcesText is what is not free, and where there is most of it.
func (c *census) resourcesText(x *shape) string {
	text := "needs " + x.text()
	if ranks := x.Ranks(); ranks > 1 {
		text += fmt.Sprintf("; %d of %d nodes have room", c.room, ranks)
	}
	if c.near.node != "" {
		text += fmt.Sprintf("; nearest is %s: %s", c.near.node, c.near.words(x))
	}
	if x.MilliGPU > 0 && !x.share() && c.nodes > 1 {
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
