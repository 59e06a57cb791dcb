package sched

import "container/heap"

// heads is the queue in one round: a heap of kinds by the priority of the next
// job, each with a heap of its classes. A kind for which there is no room
// leaves it as a whole, mostly before its classes had to be sorted.
type heads struct {
	kinds    []*jobKind
	shortest bool // candidates by expected run time, then as usual
}

func (h *heads) empty() bool { return len(h.kinds) == 0 }

func (h *heads) first() (*jobKind, *class, *entry) {
	k := h.kinds[0]
	if k.opened {
		c := k.heap[0]
		return k, c, c.jobs[c.next]
	}
	c := k.heads[k.best].class
	return k, c, c.jobs[c.head]
}

// fill makes the queue of all jobs that may start by their own will.
func (r *round) fill() {
	h := &r.queue
	h.kinds = r.s.scratch[:0]
	for _, a := range r.s.accounts { // each by itself: order does not matter
		a.points = r.sharePoints(a)
	}
	for _, k := range r.s.kindList {
		k.blocked, k.opened = false, false
		k.size = r.sizePoints(k.shape)
		if r.rank(k) {
			h.kinds = append(h.kinds, k)
		}
	}
	heap.Init(h)
	r.s.scratch = h.kinds[:0]
}

// rank finds the head of highest priority. It returns false if no job of the
// kind may start yet.
func (r *round) rank(k *jobKind) bool {
	k.best = -1
	for i := range k.heads {
		x := &k.heads[i]
		if x.since > r.now {
			r.wake(x.since)
			continue
		}
		if x.rare && x.class.jobs[x.class.head].deadline() <= r.now {
			r.open(k) // the next job of the class counts
			return len(k.heap) > 0
		}
		score := r.score(k, x.static+x.account.points, x.since)
		if k.best >= 0 {
			if score < k.score {
				continue
			}
			if b := &k.heads[k.best]; score == k.score && (x.since > b.since || x.since == b.since && x.id > b.id) {
				continue
			}
		}
		k.best, k.score = i, score
	}
	return k.best >= 0
}

// open sorts the classes of a kind.
func (r *round) open(k *jobKind) {
	if k.opened {
		return
	}
	k.opened, k.heap = true, k.heap[:0]
	for i := range k.heads {
		c := k.heads[i].class
		c.next = c.head - 1
		if r.forward(c) {
			k.heap = append(k.heap, c)
		}
	}
	heap.Init((*classHeap)(k))
}

// forward moves the class to its next job that may start now, and scores it.
func (r *round) forward(c *class) bool {
	for c.next++; c.next < len(c.jobs); c.next++ {
		e := c.jobs[c.next]
		if e == nil {
			continue
		}
		if e.since > r.now {
			r.wake(e.since)
			return false
		}
		if e.rare != nil && e.deadline() <= r.now {
			continue
		}
		h := &c.kind.heads[c.slot]
		c.score = r.score(c.kind, h.static+h.account.points, e.since)
		return true
	}
	return false
}

// advance steps past the first job.
func (h *heads) advance(r *round) {
	k := h.kinds[0]
	r.open(k)
	if !r.forward(k.heap[0]) {
		h.dropClass(r)
		return
	}
	heap.Fix((*classHeap)(k), 0)
	heap.Fix(h, 0)
}

// dropClass takes the first job's class out of the round.
func (h *heads) dropClass(r *round) {
	k := h.kinds[0]
	r.open(k)
	heap.Pop((*classHeap)(k))
	if len(k.heap) == 0 {
		heap.Pop(h)
		return
	}
	heap.Fix(h, 0)
}

// dropKind takes the first job's kind out of the round.
func (h *heads) dropKind(r *round) {
	k, _, e := h.first()
	r.plan.kinds[k.id] = verdict{code: k.why.code, head: e.id, why: k.why}
	heap.Pop(h)
}

// candidates puts the queue into the order in which jobs may go past those that
// have a reservation.
func (h *heads) candidates(r *round) {
	if r.policy.Mode == EasySJBF || r.policy.Mode == Gbatch && r.policy.BackfillOrder == ByShortest {
		h.shortest = true
		heap.Init(h)
	}
}

// rejectRest fails the interactive jobs that strict order keeps from being
// looked at.
func (h *heads) rejectRest(r *round) {
	for _, k := range h.kinds {
		if !k.interactive {
			continue
		}
		r.open(k)
		for _, c := range k.heap {
			r.rejectInteractive(c)
		}
	}
}

func (h *heads) Len() int { return len(h.kinds) }
func (h *heads) Less(i, j int) bool {
	a, b := h.kinds[i], h.kinds[j]
	if h.shortest && a.expected != b.expected {
		return a.expected < b.expected
	}
	sa, ea := a.top()
	sb, eb := b.top()
	if sa != sb {
		return sa > sb
	}
	return compareEntries(ea, eb) < 0
}
func (h *heads) Swap(i, j int) { h.kinds[i], h.kinds[j] = h.kinds[j], h.kinds[i] }
func (h *heads) Push(x any)    { h.kinds = append(h.kinds, x.(*jobKind)) }
func (h *heads) Pop() any {
	last := h.kinds[len(h.kinds)-1]
	h.kinds = h.kinds[:len(h.kinds)-1]
	return last
}

// top is the next job of the kind and its priority.
func (k *jobKind) top() (int64, *entry) {
	if k.opened {
		c := k.heap[0]
		return c.score, c.jobs[c.next]
	}
	c := k.heads[k.best].class
	return k.score, c.jobs[c.head]
}

// classHeap is the classes of a kind that still have jobs to look at, by the
// priority of their next jobs: points, eligible time, number.
type classHeap jobKind

func (h *classHeap) Len() int { return len(h.heap) }
func (h *classHeap) Less(i, j int) bool {
	a, b := h.heap[i], h.heap[j]
	if a.score != b.score {
		return a.score > b.score
	}
	return compareEntries(a.jobs[a.next], b.jobs[b.next]) < 0
}
func (h *classHeap) Swap(i, j int) { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }
func (h *classHeap) Push(x any)    { h.heap = append(h.heap, x.(*class)) }
func (h *classHeap) Pop() any {
	last := h.heap[len(h.heap)-1]
	h.heap = h.heap[:len(h.heap)-1]
	return last
}
