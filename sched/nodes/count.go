package nodes

import (
	"fmt"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// Counts is how many nodes a rank finds in which condition. It is numbers only:
// the words are made when somebody asks.
type Counts struct {
	Nodes  int    // could hold it if nothing else were on them
	Room   int    // have room, whatever was planned
	Shut   int    // have room, and a window keeps it off
	Window string // the first of these, by name
	Closed int    // that take no jobs now: drained, unhealthy, silent or the like
	Free   int64  // GPU thousandths that are free for it, or cores, of those that have no room
	Near   Lack   // of these, the node with the most

	Groups []Counts // of each group of ranks by itself, where they are not alike

	Storage []StorageCount // where the storage is that the job needs
	All     int            // nodes that there are, where storage was counted
}

// Count counts by what is held on the nodes.
func (ix *Index) Count(req *Request, now spec.Time) Counts {
	if len(req.Shape.Groups) > 0 {
		return ix.countGroups(req, now)
	}
	out := Counts{Near: Lack{Free: -1}}
	out.Storage, out.All = ix.countStorage(req.Shape)
	for _, kind := range ix.Order {
		f := req.Shape.On(kind)
		if !f.OK {
			continue
		}
		if kind.full(req.Shape) && f.Away == "" {
			out.countByFree(kind, req, f, now)
			continue
		}
		for _, n := range kind.Nodes {
			if n.Gone || !req.Shape.Named(n) {
				continue
			}
			out.Nodes++
			switch {
			case !n.TakesJobs():
				out.Closed++
			case f.Away == "": // else see Storage
				out.count(n, req, f, now)
			}
		}
	}
	return out
}

// Matching is how many nodes could hold a rank of the shape if nothing else were on
// them; of groups of ranks, for how many ranks together there are nodes. The index
// must be up to date.
func (ix *Index) Matching(shape *Shape) (n int) {
	if len(shape.Groups) > 0 {
		return ix.matchingGroups(shape)
	}
	for _, kind := range ix.Order {
		switch {
		case !shape.On(kind).OK:
		case !shape.choosy():
			n += kind.Known
		default:
			for _, x := range kind.Nodes {
				if !x.Gone && shape.Named(x) {
					n++
				}
			}
		}
	}
	return n
}

// full says that nodes of the kind without a free GPU have nothing for a rank.
func (kind *Kind) full(shape *Shape) bool {
	return shape.MilliGPU >= spec.WholeGPU && !shape.Whole() && !shape.choosy()
}

// countByFree counts the nodes of a kind, and looks only at those that have a GPU free.
func (c *Counts) countByFree(kind *Kind, req *Request, f Fit, now spec.Time) {
	c.Nodes += kind.Known
	c.Closed += kind.Known - kind.Taking
	for w := 1; w < len(kind.whole); w++ {
		for i := kind.whole[w].next(0); i >= 0; i = kind.whole[w].next(i + 1) {
			c.count(kind.Nodes[i], req, f, now)
		}
	}
	if i := kind.whole[0].next(0); i >= 0 {
		c.count(kind.Nodes[i], req, f, now) // stands for the others, which have as little and come later by name
	}
}

func (c *Counts) count(n *Node, req *Request, f Fit, now spec.Time) {
	if _, ok := n.Room(req.Shape, f); !ok {
		free := n.freeFor(req.Shape, f)
		c.Free += free
		if free > c.Near.Free || free == c.Near.Free && n.Name < c.Near.Node {
			c.Near = n.Lack(req.Shape, f)
		}
		return
	}
	if w := n.ShutBy(req, f, now); w == nil {
		c.Room++
	} else if c.Shut++; c.Window == "" || w.Name < c.Window {
		c.Window = w.Name
	}
}

// Words is what is not free, and where there is most of it.
func (c *Counts) Words(shape *Shape) string {
	text := "needs " + shape.Text()
	if len(shape.Groups) > 0 {
		return text + c.groupWords(shape)
	}
	if ranks := shape.Ranks(); ranks > 1 {
		text += fmt.Sprintf("; %d of %d nodes have room", c.Room, ranks)
	}
	return text + c.lackWords(shape)
}

// lackWords is what is not free of what the ranks of one group need.
func (c *Counts) lackWords(shape *Shape) (text string) {
	if c.Near.Node != "" {
		text += fmt.Sprintf("; nearest is %s: %s", c.Near.Node, c.Near.Words(shape))
	}
	if shape.MilliGPU > 0 && !shape.Share() && c.Nodes > 1 {
		text += fmt.Sprintf("; %s free on all %d nodes that could hold it", words.Plural(int(c.Free/spec.WholeGPU), "GPU"), c.Nodes)
	}
	for _, s := range c.Storage {
		if where := s.words(c.All); where != "" {
			text += "; " + where
		}
	}
	switch {
	case c.Closed == 1 && c.Nodes == 1:
		text += "; the one node that could hold it takes no jobs now"
	case c.Closed == c.Nodes:
		text += fmt.Sprintf("; all %d nodes that could hold it take no jobs now", c.Nodes)
	case c.Closed > 0:
		text += fmt.Sprintf("; %d of %d nodes that could hold it take no jobs now", c.Closed, c.Nodes)
	}
	return text
}
