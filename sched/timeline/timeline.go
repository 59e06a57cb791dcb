// Package timeline keeps what is free on one node from now on: as jobs are expected to
// end, less what is reserved. It plans nothing itself; a line belongs to one round of the
// scheduler.
package timeline

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// Line is what is free on a node from now on. It is made for the nodes that a round needs
// it of.
type Line struct {
	Points []Point   // by time; each holds until the next, the last for ever
	Booked []Booking // the reservations in it
	Made   bool      // in this round
}

// Booking is a reservation.
type Booking struct {
	Start, End spec.Time
	Use        Use
	Job        spec.JobID
}

// Point is what is free from a moment on.
type Point struct {
	At       spec.Time
	cpu, mem int64
	disk     int64
	Free     nodes.GPUSet // usable and not used at all
	used     []int32      // thousandths in use by GPU; nil where the set of free ones says it all
	held     int          // ranks and reservations
	alone    int          // of these, the ones that nothing else may be beside
}

// Use is what a rank takes of a node.
type Use struct {
	CPU, Mem int64
	GPUs     nodes.GPUSet
	Milli    int32 // of each of these GPUs
	Alone    bool  // nothing else may be beside it
	Disk     int64
}

// Ending is when a rank is expected to give back what it holds.
type Ending struct {
	At   spec.Time
	Rank *nodes.Rank
}

// Project makes the line anew from what is held on the node, without any reservation: its
// ranks end as told. The memory of its reservations is used again: whoever puts some of them
// back does so in their order. With exact the use of each GPU is kept, though none is shared.
func (l *Line) Project(n *nodes.Node, now spec.Time, ends []Ending, exact bool) {
	l.Booked = l.Booked[:0]
	first := Point{At: now, cpu: n.CPUFree, mem: n.MemFree, disk: n.DiskFree, Free: n.Free, held: len(n.Ranks)}
	for _, rank := range n.Ranks {
		first.alone += count(rank.Whole)
	}
	if n.AllowShare || exact {
		first.used = append(make([]int32, 0, len(n.Used)), n.Used...)
	}
	slices.SortFunc(ends, func(a, b Ending) int { return cmp.Compare(a.At, b.At) })
	l.Points = append(l.Points[:0], first)
	for _, e := range ends {
		p := l.last()
		if e.At > p.At {
			l.Points = append(l.Points, p.copyAt(e.At))
			p = l.last()
		}
		p.held--
		p.alone -= count(e.Rank.Whole)
		p.cpu += e.Rank.MilliCPU
		p.mem += e.Rank.MemMiB
		p.disk += e.Rank.DiskMiB
		for _, u := range e.Rank.GPUs {
			p.giveGPU(n, int(u.GPU), u.Milli)
		}
	}
}

func (l *Line) last() *Point { return &l.Points[len(l.Points)-1] }

func (p *Point) copyAt(t spec.Time) Point {
	q := *p
	q.At = t
	q.used = slices.Clone(p.used)
	return q
}

func (p *Point) giveGPU(n *nodes.Node, g int, milli int32) {
	if p.used == nil {
		if n.Usable.Has(g) {
			p.Free.Add(g)
		}
		return
	}
	p.used[g] -= milli
	if p.used[g] == 0 && n.Usable.Has(g) {
		p.Free.Add(g)
	}
}

// Book puts a reservation into the line.
func (l *Line) Book(b Booking) {
	l.Reserve(b.Start, b.End, b.Use)
	l.Booked = append(l.Booked, b)
}

// Reserve takes u from start until end.
func (l *Line) Reserve(start, end spec.Time, u Use) {
	from, to := l.cut(start), l.cut(end)
	for i := from; i < to; i++ {
		p := &l.Points[i]
		p.cpu -= u.CPU
		p.mem -= u.Mem
		p.disk -= u.Disk
		p.held++
		p.alone += count(u.Alone)
		p.Free = p.Free.AndNot(u.GPUs)
		if p.used != nil {
			for g := u.GPUs.Next(0); g >= 0; g = u.GPUs.Next(g + 1) {
				p.used[g] += u.Milli
			}
		}
	}
}

// Unbook is the inverse of Book. It needs the use of each GPU in the line, since what was
// reserved may overlap with a job that runs longer than it should.
func (l *Line) Unbook(n *nodes.Node, b Booking) {
	at := slices.IndexFunc(l.Booked, func(o Booking) bool { return o == b })
	l.Booked = slices.Delete(l.Booked, at, at+1)
	from, to := l.cut(b.Start), l.cut(b.End)
	for i := from; i < to; i++ {
		p := &l.Points[i]
		p.cpu += b.Use.CPU
		p.mem += b.Use.Mem
		p.disk += b.Use.Disk
		p.held--
		p.alone -= count(b.Use.Alone)
		for g := b.Use.GPUs.Next(0); g >= 0; g = b.Use.GPUs.Next(g + 1) {
			if p.used[g] -= b.Use.Milli; p.used[g] == 0 && n.Usable.Has(g) {
				p.Free.Add(g)
			}
		}
	}
	l.merge(from)
	l.merge(slices.IndexFunc(l.Points, func(p Point) bool { return p.At == b.End }))
}

// merge drops a point that says the same as the one before it.
func (l *Line) merge(i int) {
	if i <= 0 {
		return
	}
	a, b := &l.Points[i-1], &l.Points[i]
	if a.cpu == b.cpu && a.mem == b.mem && a.disk == b.disk && a.Free == b.Free && a.held == b.held && a.alone == b.alone && slices.Equal(a.used, b.used) {
		l.Points = slices.Delete(l.Points, i, i+1)
	}
}

func at(p Point, t spec.Time) int { return cmp.Compare(p.At, t) }

// cut is the index of the point at t, which is made if need be.
func (l *Line) cut(t spec.Time) int {
	i, ok := slices.BinarySearchFunc(l.Points, t, at)
	if ok {
		return i
	}
	if i == 0 {
		return 0
	}
	l.Points = slices.Insert(l.Points, i, l.Points[i-1].copyAt(t))
	return i
}

// Index of the point that holds at t.
func (l *Line) Index(t spec.Time) int {
	i, ok := slices.BinarySearchFunc(l.Points, t, at)
	if !ok && i > 0 {
		i--
	}
	return i
}

// Room is the GPUs that a rank of the request can have from start until end, and
// whether there is enough of everything. Where there is not, short is the index
// of the last point that rules out any earlier start.
func (l *Line) Room(n *nodes.Node, req *nodes.Request, start, end spec.Time) (avail nodes.GPUSet, short int, ok bool) {
	shape := req.Shape
	f := shape.On(n.Kind)
	first := l.Index(start)
	avail = f.GPUs.And(n.Usable).AndNot(n.Kept(req, start))
	for i := first; i < len(l.Points) && (i == first || l.Points[i].At < end); i++ {
		p := &l.Points[i]
		if shape.Whole() {
			if p.held > 0 {
				return avail, i, false
			}
			continue
		}
		if p.alone > 0 || p.cpu < shape.MilliCPU || p.mem < shape.MemOf(n.MemMiB) || p.disk < shape.DiskMiB {
			return avail, i, false
		}
		if shape.MilliGPU == 0 {
			continue
		}
		avail = p.having(avail, shape.MilliGPU)
		if avail.Count() < shape.Least() {
			return avail, first, false
		}
	}
	return avail, 0, !shape.Whole() || n.WholeFits(shape, f)
}

// having is those of the GPUs that have so much free: all of it, for a request
// of whole GPUs.
func (p *Point) having(gpus nodes.GPUSet, milli int64) nodes.GPUSet {
	if milli >= spec.WholeGPU || p.used == nil {
		return gpus.And(p.Free)
	}
	for g := gpus.Next(0); g >= 0; g = gpus.Next(g + 1) {
		if int64(p.used[g])+milli > spec.WholeGPU {
			gpus.Remove(g)
		}
	}
	return gpus
}

// Spare is what of the node is free from start until end for jobs that share it.
func (l *Line) Spare(n *nodes.Node, start, end spec.Time) nodes.Spare {
	first := l.Index(start)
	out := nodes.Spare{Node: n, CPU: l.Points[first].cpu, Mem: l.Points[first].mem, Disk: l.Points[first].disk, GPUs: n.Usable}
	for i := first; i < len(l.Points) && (i == first || l.Points[i].At < end); i++ {
		p := &l.Points[i]
		if p.alone > 0 {
			return nodes.Spare{Node: n}
		}
		out.CPU, out.Mem, out.Disk, out.GPUs = min(out.CPU, p.cpu), min(out.Mem, p.mem), min(out.Disk, p.disk), out.GPUs.And(p.Free)
	}
	return out
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
