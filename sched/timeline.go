package sched

import (
	"cmp"
	"slices"
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
	free     gpuSet  // usable and not used at all
	used     []int32 // thousandths in use by GPU; nil where the set of free ones says it all
	held     int     // ranks and reservations
	alone    int     // of these, the ones that nothing else may be beside
}

// use is what a rank takes of a node.
type use struct {
	cpu, mem int64
	gpus     gpuSet
	milli    int32 // of each of these GPUs
	alone    bool  // nothing else may be beside it
}

// timeline of the node, made when first asked for.
func (r *round) timeline(n *node) *timeline {
	l := &r.lines[n.no]
	if !l.made {
		l.made = true
		r.project(n, l)
		r.lined = append(r.lined, n)
	}
	return l
}

// reline makes the node's timeline anew, after it was changed which of its jobs
// are to be ended.
func (r *round) reline(n *node) {
	l := r.timeline(n)
	booked := l.booked
	r.project(n, l)
	for _, b := range booked {
		l.book(b)
	}
}

// project makes the timeline anew from what is held on the node, without any
// reservation. The memory of its reservations is used again: whoever puts some
// of them back does so in their order.
func (r *round) project(n *node, l *timeline) {
	l.booked = l.booked[:0]
	first := point{at: r.now, cpu: n.cpuFree, mem: n.memFree, free: n.free, held: len(n.ranks)}
	for _, k := range n.ranks {
		first.alone += boolInt(k.whole)
	}
	if n.AllowShare || r.promises != nil {
		first.used = append(make([]int32, 0, len(n.used)), n.used...)
	}
	ends := r.ends[:0]
	for _, k := range n.ranks {
		ends = append(ends, ending{r.expectedEnd(k.run), k})
	}
	r.ends = ends
	slices.SortFunc(ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	l.points = append(l.points[:0], first)
	for _, e := range ends {
		p := l.last()
		if e.at > p.at {
			l.points = append(l.points, p.copyAt(e.at))
			p = l.last()
		}
		p.held--
		p.alone -= boolInt(e.rank.whole)
		p.cpu += e.rank.cpu
		p.mem += e.rank.mem
		for _, u := range e.rank.gpus {
			p.giveGPU(n, int(u.gpu), u.milli)
		}
	}
}

type ending struct {
	at   Time
	rank *rank
}

func (l *timeline) last() *point { return &l.points[len(l.points)-1] }

func (p *point) copyAt(t Time) point {
	q := *p
	q.at = t
	q.used = slices.Clone(p.used)
	return q
}

func (p *point) giveGPU(n *node, g int, milli int32) {
	if p.used == nil {
		if n.usable.has(g) {
			p.free.add(g)
		}
		return
	}
	p.used[g] -= milli
	if p.used[g] == 0 && n.usable.has(g) {
		p.free.add(g)
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
		p.held++
		p.alone += boolInt(u.alone)
		p.free = p.free.andNot(u.gpus)
		if p.used != nil {
			for g := u.gpus.next(0); g >= 0; g = u.gpus.next(g + 1) {
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
func (l *timeline) room(n *node, k *jobKind, start, end Time) (avail gpuSet, short int, ok bool) {
	f := k.shape.on(n.kind)
	first := l.index(start)
	avail = f.gpus.and(n.usable).andNot(n.kept(&k.request, start))
	for i := first; i < len(l.points) && (i == first || l.points[i].at < end); i++ {
		p := &l.points[i]
		if k.shape.Whole() {
			if p.held > 0 {
				return avail, i, false
			}
			continue
		}
		if p.alone > 0 || p.cpu < k.shape.MilliCPU || p.mem < k.shape.MemMiB {
			return avail, i, false
		}
		if k.shape.MilliGPU == 0 {
			continue
		}
		avail = p.having(avail, k.shape.MilliGPU)
		if avail.count() < k.shape.least() {
			return avail, first, false
		}
	}
	return avail, 0, !k.shape.Whole() || n.wholeFits(k.shape, f)
}

// having is those of the GPUs that have so much free: all of it, for a request
// of whole GPUs.
func (p *point) having(gpus gpuSet, milli int64) gpuSet {
	if milli >= WholeGPU || p.used == nil {
		return gpus.and(p.free)
	}
	for g := gpus.next(0); g >= 0; g = gpus.next(g + 1) {
		if int64(p.used[g])+milli > WholeGPU {
			gpus.remove(g)
		}
	}
	return gpus
}

// expectedEnd is when a running job is reckoned to give back what it holds:
// always later than now.
func (r *round) expectedEnd(x *run) Time {
	end := x.End
	if p := x.Job.Predicted; p > 0 && r.policy.plansByPrediction() {
		end = min(end, x.Start+lengthened(p, r.now-x.Start))
	}
	if x.Halting {
		end = min(end, r.now+r.policy.HaltGrace)
	}
	if end <= r.now { // it is over its time: the node is about to end it
		end = r.now + max(r.policy.HaltGrace, 1)
	}
	return end
}

// corrections lengthen a predicted run time each time that it is exceeded
// (Tsafrir et al. 2007).
var corrections = []Time{Minute, 5 * Minute, 15 * Minute, 30 * Minute, Hour, 2 * Hour, 5 * Hour, 10 * Hour, 20 * Hour, 50 * Hour, 100 * Hour}

// lengthened is the prediction that holds after a job ran for so long.
func lengthened(predicted, ran Time) Time {
	for i := 0; predicted <= ran; i++ {
		predicted += corrections[min(i, len(corrections)-1)]
		if i > 1000 {
			return ran + corrections[len(corrections)-1]
		}
	}
	return predicted
}
