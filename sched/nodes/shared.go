package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// Ranks of one job may share a node where its shape says so. What is then asked of a node
// is not whether a rank has room there but how many have, of all groups together.

// Spare is what of a node is free for a job, over the time that it may run.
type Spare struct {
	Node           *Node
	CPU, Mem, Disk int64
	GPUs           GPUSet

	room, free, class int // see packer.arrange
}

// Spare is what is free by what is held now.
func (n *Node) Spare() Spare {
	if len(n.Ranks) > 0 && n.Ranks[0].Whole {
		return Spare{Node: n}
	}
	return Spare{Node: n, CPU: n.CPUFree, Mem: n.MemFree, Disk: n.DiskFree, GPUs: n.Free}
}

// empty is what the node has with nothing on it and all its GPUs in order.
func (n *Node) empty() Spare {
	return Spare{Node: n, CPU: n.MilliCPU, Mem: n.MemMiB, Disk: n.DiskMiB, GPUs: n.Kind.GPUs}
}

// Seat is where a rank goes.
type Seat struct {
	Node  *Node
	GPUs  GPUSet
	Shape *Shape // of its group
}

// Pack finds a seat for each rank of a shape whose ranks share nodes, in the order of the
// ranks: on few nodes that are near each other. It is nil if not all have one.
//
// Of ranks that are alike it finds seats whenever there are any. With several groups that is
// the packing of boxes, for which nobody knows a quick way: those that ask for most go first,
// and maxRetries bounds how often one is tried elsewhere for the sake of others.
func Pack(shape *Shape, list []Spare) []Seat {
	if p := newPacker(shape, list, Fit.Now); p.enough() && p.group(0) {
		return p.seats()
	}
	return nil
}

// seated is how many ranks Pack finds a seat for, or could if not all had to have one.
func seated(shape *Shape, list []Spare, will func(Fit) bool) int {
	p := newPacker(shape, list, will)
	if p.enough() && p.group(0) {
		return shape.Ranks()
	}
	return p.some()
}

const maxRetries = 2000

// packer is a packing in the making.
type packer struct {
	shape *Shape
	order []*Shape // the groups, those that ask for most first
	list  []Spare
	fits  [][]Fit // of each of these on each of list
	rest  [][]int // how many of each there is room for from each of list on, if the others were not there
	on    []int   // ranks on each of list

	made    []share // in the order in which they were given
	retries int
}

// share is what ranks of a group have of a node.
type share struct {
	group, at, count int
	gpus             GPUSet
	before           Spare
}

func newPacker(shape *Shape, list []Spare, will func(Fit) bool) *packer {
	p := &packer{shape: shape, order: slices.Clone(shape.Groups), list: slices.Clone(list), on: make([]int, len(list))}
	slices.SortStableFunc(p.order, func(a, b *Shape) int {
		return cmp.Or(cmp.Compare(b.MilliGPU, a.MilliGPU), cmp.Compare(b.MilliCPU, a.MilliCPU), cmp.Compare(b.MemMiB, a.MemMiB))
	})
	p.arrange(will)
	for g, of := range p.order {
		fits, rest := make([]Fit, len(p.list)), make([]int, len(p.list)+1)
		var kind *Kind
		var fit Fit
		for i := range p.list {
			if k := p.list[i].Node.Kind; k != kind {
				if kind, fit = k, of.On(k); !will(fit) {
					fit = Fit{}
				}
			}
			fits[i] = fit
		}
		p.fits = append(p.fits, fits)
		for i := len(p.list) - 1; i >= 0; i-- {
			rest[i] = rest[i+1] + p.room(g, i)
		}
		p.rest = append(p.rest, rest)
	}
	return p
}

// enough says whether each group by itself has room.
func (p *packer) enough() bool {
	for g, of := range p.order {
		if p.rest[g][0] < of.Ranks() {
			return false
		}
	}
	return true
}

// arrange sorts the nodes: those under the smallest switch with room for all ranks first, or
// else the largest; of these the ones with room for most, and then those with the least free.
func (p *packer) arrange(will func(Fit) bool) {
	ranks, under := p.shape.Ranks(), map[string]int{}
	var fits []Fit
	var kind *Kind
	total := make([]int, len(p.order)) // for how many of each group there is room, if the others were not there
	for i := range p.list {
		s := &p.list[i]
		if s.Node.Kind != kind {
			kind, fits = s.Node.Kind, fits[:0]
			for _, of := range p.order {
				fits = append(fits, of.On(kind))
			}
		}
		for g, of := range p.order {
			if will(fits[g]) {
				k := s.holds(of, fits[g], min(of.Ranks(), p.shape.most(s.Node)))
				s.room, total[g] = s.room+k, total[g]+k
			}
		}
		s.room, s.free = min(s.room, p.shape.most(s.Node), ranks), s.GPUs.Count()
		under[s.Node.Switch] += s.room
	}
	p.list = slices.DeleteFunc(p.list, func(s Spare) bool { return s.room == 0 })
	for g, of := range p.order {
		if total[g] < of.Ranks() {
			return // not all will have a seat, in whatever order
		}
	}
	class := func(s *Spare) int {
		if c := under[s.Node.Switch]; c >= ranks {
			return c
		} else {
			return 1<<30 - c
		}
	}
	if len(under) > 1 {
		for i := range p.list {
			p.list[i].class = class(&p.list[i])
		}
	}
	slices.SortStableFunc(p.list, func(a, b Spare) int {
		if a.room == b.room && a.class == b.class && a.Node.Switch == b.Node.Switch {
			return cmp.Or(a.free-b.free, cmp.Compare(a.CPU, b.CPU))
		}
		return cmp.Or(a.class-b.class, strings.Compare(a.Node.Switch, b.Node.Switch), b.room-a.room)
	})
}

// most is how many ranks may be on a node.
func (shape *Shape) most(n *Node) int {
	if n.Apart {
		return 1
	}
	return shape.PerNode
}

// holds is how many ranks have room in what is spare, and at most so many.
func (s *Spare) holds(of *Shape, f Fit, most int) int {
	n := int64(most)
	for _, q := range [...]struct{ free, each int64 }{{s.CPU, of.MilliCPU}, {s.Mem, of.MemMiB}, {s.Disk, of.DiskMiB},
		{int64(s.GPUs.And(f.GPUs).Count()), int64(of.Least())}} {
		if q.free < 0 {
			return 0
		}
		if q.each > 0 {
			n = min(n, q.free/q.each)
		}
	}
	return int(n)
}

// room is how many more ranks of a group have room on a node.
func (p *packer) room(g, i int) int {
	if !p.fits[g][i].OK {
		return 0
	}
	return p.list[i].holds(p.order[g], p.fits[g][i], p.shape.most(p.list[i].Node)-p.on[i])
}

// group gives seats to the ranks of a group and of those after it.
func (p *packer) group(g int) bool {
	return g == len(p.order) || p.from(g, 0, p.order[g].Ranks())
}

// from gives seats to those left of a group, on this node and the ones after it.
func (p *packer) from(g, i, left int) bool {
	if left == 0 {
		return p.group(g + 1)
	}
	for ; i < len(p.list) && p.rest[g][i] >= left; i++ {
		most := min(left, p.room(g, i))
		for k := most; k > 0; k-- {
			p.take(g, i, k)
			if p.from(g, i+1, left-k) {
				return true
			}
			p.give()
			if p.retries++; p.retries > maxRetries || g == len(p.order)-1 {
				return false // after the last group nobody needs what it leaves
			}
		}
	}
	return false
}

func (p *packer) take(g, i, k int) {
	of, s := p.order[g], &p.list[i]
	made := share{group: g, at: i, count: k, before: *s}
	made.gpus, _ = s.Node.Kind.Pick(s.GPUs.And(p.fits[g][i].GPUs), k*of.Least())
	s.CPU -= int64(k) * of.MilliCPU
	s.Mem -= int64(k) * of.MemMiB
	s.Disk -= int64(k) * of.DiskMiB
	s.GPUs = s.GPUs.AndNot(made.gpus)
	p.on[i] += k
	p.made = append(p.made, made)
}

func (p *packer) give() {
	last := p.made[len(p.made)-1]
	p.made = p.made[:len(p.made)-1]
	p.list[last.at] = last.before
	p.on[last.at] -= last.count
}

// some is how many ranks have room where not all have.
func (p *packer) some() (count int) {
	for g, of := range p.order {
		left := of.Ranks()
		for i := range p.list {
			if k := min(left, p.room(g, i)); k > 0 {
				p.take(g, i, k)
				left -= k
				count += k
			}
		}
	}
	return count
}

// seats are those of all ranks, in their order.
func (p *packer) seats() (out []Seat) {
	for _, of := range p.shape.Groups {
		for _, m := range p.made {
			if p.order[m.group] != of {
				continue
			}
			n, left := p.list[m.at].Node, m.gpus
			for range m.count {
				gpus, _ := n.Kind.Pick(left, of.Least())
				left = left.AndNot(gpus)
				out = append(out, Seat{n, gpus, of})
			}
		}
	}
	return out
}

// matchingShared is for how many ranks there is room if nothing else were on the nodes. A part
// of the nodes is enough where it has room for all.
func (ix *Index) matchingShared(shape *Shape) (count int) {
	var list []Spare
	next := 2 * shape.Ranks()
	for i, n := range ix.Sorted {
		if !n.Gone && shape.Named(n) {
			list = append(list, n.empty())
		}
		if len(list) == next || i == len(ix.Sorted)-1 {
			if count = seated(shape, list, func(f Fit) bool { return f.OK }); count == shape.Ranks() {
				return count
			}
			next *= 4
		}
	}
	return count
}

// countShared is Count for ranks that share nodes: for how many of them there is room.
func (ix *Index) countShared(req *Request, now spec.Time) Counts {
	out := Counts{Near: Lack{Free: -1}, Nodes: ix.matchingShared(req.Shape)}
	for _, g := range req.Shape.Groups {
		one := *req
		one.Shape = g
		out.Groups = append(out.Groups, ix.Count(&one, now))
	}
	var room, open []Spare
	for _, n := range ix.Sorted {
		if !n.TakesJobs() || !req.Shape.Named(n) {
			continue
		}
		s := n.Spare()
		open = append(open, s)
		kept := n.Kept(req, now)
		w := n.Closed(req, now)
		if w == nil {
			s.GPUs = s.GPUs.AndNot(kept)
			room = append(room, s)
		}
		for _, c := range n.Windows {
			if c.shuts(req, now) && (out.Window == "" || c.Name < out.Window) {
				out.Window = c.Name
			}
		}
	}
	out.Room = seated(req.Shape, room, Fit.Now)
	if out.Window != "" {
		out.Shut = max(seated(req.Shape, open, Fit.Now)-out.Room, 0)
	}
	return out
}

// sharedWords says for how many ranks there is room, and what those lack that have none.
func (c *Counts) sharedWords(shape *Shape) string {
	text := fmt.Sprintf("; %d of %s have room", c.Room, words.Plural(shape.Ranks(), "rank"))
	for i, g := range shape.Groups {
		if of := &c.Groups[i]; of.Room == 0 || len(shape.Groups) == 1 {
			if len(shape.Groups) > 1 {
				text += fmt.Sprintf("; group %d", i)
			}
			text += of.lackWords(g)
		}
	}
	return text
}

// sharedText is the request of such ranks in words.
func (shape *Shape) sharedText() string {
	var all []string
	for _, g := range shape.Groups {
		all = append(all, words.Plural(g.Ranks(), "rank")+" with "+g.rankText())
	}
	text := strings.Join(all, ", and ")
	if shape.PerNode < shape.Ranks() {
		text += fmt.Sprintf(", at most %d on a node", shape.PerNode)
	}
	return text
}

// neverShared is NeverText for such ranks.
func (ix *Index) neverShared(shape *Shape, matching int) string {
	for i, g := range shape.Groups {
		if ix.Matching(g) > 0 {
			continue
		}
		if len(shape.Groups) == 1 {
			return ix.NeverText(g, 0)
		}
		return fmt.Sprintf("group %d: %s", i, ix.NeverText(g, 0))
	}
	among := ""
	if shape.choosy() {
		among = " that it allows by name"
	}
	return fmt.Sprintf("needs %s: all nodes%s together have room for %s", shape.Text(), among, words.Plural(matching, "rank"))
}

// Plus is the shape of a rank with another one's beside it.
func (shape *Shape) Plus(other *Shape) *Shape {
	out := *shape
	out.MilliGPU += other.MilliGPU
	out.MilliCPU += other.MilliCPU
	out.MemMiB += other.MemMiB
	out.DiskMiB += other.DiskMiB
	out.fits = map[*Kind]Fit{}
	return &out
}

// Place is what a rank takes one of, in words.
func (shape *Shape) Place() string {
	if shape.Shares() {
		return "place"
	}
	return "node"
}
