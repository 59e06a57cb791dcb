package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
)

// timeline is what is free on a node from now on: as jobs are expected to end,
// less what is reserved. It is made for the nodes that a round needs it of.
type timeline struct {
	points []point   // by time; each holds until the next, the last for ever
	booked []booking // the reservations in it
	made   bool      // in this round
}

type booking struct {
	start, end Time
	use        use
	job        JobID
}

type point struct {
	at       Time
	cpu, mem int64
	disk     int64
	free     nodes.GPUSet // usable and not used at all
	used     []int32      // thousandths in use by GPU; nil where the set of free ones says it all
	held     int          // ranks and reservations
	alone    int          // of these, the ones that nothing else may be beside
}

// use is what a rank takes of a node.
type use struct {
	cpu, mem int64
	gpus     nodes.GPUSet
	milli    int32 // of each of these GPUs
	alone    bool  // nothing else may be beside it
	disk     int64
}

func (l *timeline) last() *point { return &l.points[len(l.points)-1] }

func (p *point) copyAt(t Time) point {
	q := *p
	q.at = t
	q.used = slices.Clone(p.used)
	return q
}

func (p *point) giveGPU(n *nodes.Node, g int, milli int32) {
	if p.used == nil {
		if n.Usable.Has(g) {
			p.free.Add(g)
		}
		return
	}
	p.used[g] -= milli
	if p.used[g] == 0 && n.Usable.Has(g) {
		p.free.Add(g)
	}
}

// book puts a reservation into the timeline.
func (l *timeline) book(b booking) {
	l.reserve(b.start, b.end, b.use)
	l.booked = append(l.booked, b)
}

// reserve takes u from start until end.
func (l *timeline) reserve(start, end Time, u use) {
	from, to := l.cut(start), l.cut(end)
	for i := from; i < to; i++ {
		p := &l.points[i]
		p.cpu -= u.cpu
		p.mem -= u.mem
		p.disk -= u.disk
		p.held++
		p.alone += boolInt(u.alone)
		p.free = p.free.AndNot(u.gpus)
		if p.used != nil {
			for g := u.gpus.Next(0); g >= 0; g = u.gpus.Next(g + 1) {
				p.used[g] += u.milli
			}
		}
	}
}

// cut is the index of the point at t, which is made if need be.
func (l *timeline) cut(t Time) int {
	i, ok := slices.BinarySearchFunc(l.points, t, func(p point, t Time) int { return cmp.Compare(p.at, t) })
	if ok {
		return i
	}
	if i == 0 {
		return 0
	}
	l.points = slices.Insert(l.points, i, l.points[i-1].copyAt(t))
	return i
}

// index of the point that holds at t.
func (l *timeline) index(t Time) int {
	i, ok := slices.BinarySearchFunc(l.points, t, func(p point, t Time) int { return cmp.Compare(p.at, t) })
	if !ok && i > 0 {
		i--
	}
	return i
}

// room is the GPUs that a rank of the kind can have from start until end, and
// whether there is enough of everything. Where there is not, short is the index
// of the last point that rules out any earlier start.
func (l *timeline) room(n *nodes.Node, kind *jobKind, start, end Time) (avail nodes.GPUSet, short int, ok bool) {
	f := kind.Shape.On(n.Kind)
	first := l.index(start)
	avail = f.GPUs.And(n.Usable).AndNot(n.Kept(&kind.Request, start))
	for i := first; i < len(l.points) && (i == first || l.points[i].at < end); i++ {
		p := &l.points[i]
		if kind.Shape.Whole() {
			if p.held > 0 {
				return avail, i, false
			}
			continue
		}
		if p.alone > 0 || p.cpu < kind.Shape.MilliCPU || p.mem < kind.Shape.MemOf(n.MemMiB) || p.disk < kind.Shape.DiskMiB {
			return avail, i, false
		}
		if kind.Shape.MilliGPU == 0 {
			continue
		}
		avail = p.having(avail, kind.Shape.MilliGPU)
		if avail.Count() < kind.Shape.Least() {
			return avail, first, false
		}
	}
	return avail, 0, !kind.Shape.Whole() || n.WholeFits(kind.Shape, f)
}

// having is those of the GPUs that have so much free: all of it, for a request
// of whole GPUs.
func (p *point) having(gpus nodes.GPUSet, milli int64) nodes.GPUSet {
	if milli >= WholeGPU || p.used == nil {
		return gpus.And(p.free)
	}
	for g := gpus.Next(0); g >= 0; g = gpus.Next(g + 1) {
		if int64(p.used[g])+milli > WholeGPU {
			gpus.Remove(g)
		}
	}
	return gpus
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
