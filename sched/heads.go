package sched

import "container/heap"

// heads is the queue in one round: a heap of kinds, each with a heap of its
// classes, by the priority of the next job. A kind for which there is no room
// leaves it as a whole.
type heads struct {
	kinds    []*jobKind
	shortest bool // candidates by expected run time, then as usual
}

func (h *heads) empty() bool { return len(h.kinds) == 0 }

func (h *heads) first() (*jobKind, *class, *entry) {
	k := h.kinds[0]
	c := k.heap[0]
	return k, c, c.jobs[c.next]
}

// fill makes the queue of all jobs that may start by their own will.
func (r *round) fill() {
	h := &r.queue
	h.kinds = r.s.scratch[:0]
	for _, k := range r.s.kindsOf {
		k.blocked, k.heap = false, k.heap[:0]
		for _, c := range k.classes {
			c.next = c.head - 1
			if r.forward(c) {
				k.heap = append(k.heap, c)
			}
		}
		if len(k.heap) > 0 {
			heap.Init((*classHeap)(k))
			h.kinds = append(h.kinds, k)
		}
	}
	heap.Init(h)
	r.s.scratch = h.kinds
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
		c.score = r.score(c, e)
		return true
	}
	return false
}

// advance steps past the first job.
func (h *heads) advance(r *round) {
	k := h.kinds[0]
	if !r.forward(k.heap[0]) {
		h.dropClass()
		return
	}
	heap.Fix((*classHeap)(k), 0)
	heap.Fix(h, 0)
}

// dropClass takes the first job's class out of the round.
func (h *heads) dropClass() {
	k := h.kinds[0]
	heap.Pop((*classHeap)(k))
	if len(k.heap) == 0 {
		heap.Pop(h)
		return
	}
	heap.Fix(h, 0)
}

// dropKind takes the first job's kind out of the round.
func (h *heads) dropKind(r *round) {
	k := h.kinds[0]
	c := k.heap[0]
	r.plan.kinds[k.id] = verdict{code: k.why.code, head: c.jobs[c.next].id, kind: k.why}
	heap.Pop(h)
}

// candidates puts the queue into the order in which jobs may go past those that
// have a reservation.
func (h *heads) candidates(r *round) {
	if r.policy.Mode == EasySJBF {
		h.shortest = true
		heap.Init(h)
	}
}

// rest is told of the jobs that strict order keeps from being looked at.
func (h *heads) rest(r *round) {
	for _, k := range h.kinds {
		for _, c := range k.heap {
			if _, ok := r.plan.verdicts[c.id]; !ok {
				r.plan.verdicts[c.id] = verdict{code: CodePriority, head: r.firstBlocked}
				r.rejectInteractive(c)
			}
		}
	}
}

func (h *heads) Len() int { return len(h.kinds) }
func (h *heads) Less(i, j int) bool {
	a, b := h.kinds[i], h.kinds[j]
	if h.shortest && a.predicted != b.predicted {
		return a.predicted < b.predicted
	}
	return before(a.heap[0], b.heap[0])
}
func (h *heads) Swap(i, j int) { h.kinds[i], h.kinds[j] = h.kinds[j], h.kinds[i] }
func (h *heads) Push(x any)    { h.kinds = append(h.kinds, x.(*jobKind)) }
func (h *heads) Pop() any {
	last := h.kinds[len(h.kinds)-1]
	h.kinds = h.kinds[:len(h.kinds)-1]
	return last
}

// before orders two classes by their next jobs: points, eligible time, number.
func before(a, b *class) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return compareEntries(a.jobs[a.next], b.jobs[b.next]) < 0
}

// classHeap is the classes of a kind that still have jobs to look at.
type classHeap jobKind

func (h *classHeap) Len() int           { return len(h.heap) }
func (h *classHeap) Less(i, j int) bool { return before(h.heap[i], h.heap[j]) }
func (h *classHeap) Swap(i, j int)      { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }
func (h *classHeap) Push(x any)         { h.heap = append(h.heap, x.(*class)) }
func (h *classHeap) Pop() any {
	last := h.heap[len(h.heap)-1]
	h.heap = h.heap[:len(h.heap)-1]
	return last
}
