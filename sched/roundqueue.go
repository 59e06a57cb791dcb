package sched

import "container/heap"

// roundQueue is the queue in one round: a heap of kinds by the priority of the
// next job, each with a heap of its classes. A kind for which there is no room
// leaves it as a whole, mostly before its classes had to be sorted.
type roundQueue struct {
	kinds    []*kindQueue
	shortest bool // candidates by expected run time, then as usual
}

// kindQueue is the jobs of a kind in one round.
type kindQueue struct {
	*jobKind
	size    int64        // priority points of the shape's size
	best    int          // the head to look at, until sorted
	score   int64        // its priority
	sorted  bool         // classes is made
	classes []classQueue // a heap of those that still have jobs to look at
	blocked bool         // there is no room now
	why     *blocked
}

// classQueue is the jobs of a class in one round.
type classQueue struct {
	*class
	next  int   // index of the job to look at
	score int64 // its priority
}

func (h *roundQueue) empty() bool { return len(h.kinds) == 0 }

func (h *roundQueue) first() (*kindQueue, *class, *entry) {
	q := h.kinds[0]
	if q.sorted {
		c := q.classes[0]
		return q, c.class, c.jobs[c.next]
	}
	c := q.heads[q.best].class
	return q, c, c.jobs[c.head]
}

// standing is what counts for all jobs of an account.
type standing struct {
	points int64 // of fair share
	began  Time  // see ranking.began
}

// weigh works out what counts for all jobs of an account and all of a kind.
func (r *round) weigh() {
	r.ranks = resized(r.ranks, len(r.s.accountList))
	for i, account := range r.s.accountList {
		r.ranks[i] = standing{r.ranking.sharePoints(account), r.ranking.began(account)}
	}
	r.kinds = resized(r.kinds, len(r.s.kindList))
	for i, kind := range r.s.kindList {
		r.kinds[i] = kindQueue{jobKind: kind, size: r.ranking.sizePoints(kind.Shape), classes: r.kinds[i].classes[:0]}
	}
}

// fill makes the queue of all jobs that may start by their own will.
func (r *round) fill() {
	r.weigh()
	h := &r.queue
	h.kinds = r.queued[:0]
	for i := range r.kinds {
		if q := &r.kinds[i]; r.findBest(q) {
			h.kinds = append(h.kinds, q)
		}
	}
	heap.Init(h)
	r.queued = h.kinds[:0]
}

// findBest finds the head of highest priority. It returns false if no job of the
// kind may start yet.
func (r *round) findBest(q *kindQueue) bool {
	q.best = -1
	for i := range q.heads {
		head := &q.heads[i]
		if head.since > r.now {
			r.wake(head.since)
			continue
		}
		if head.rare && head.class.jobs[head.class.head].deadline() <= r.now {
			r.sortClasses(q) // the next job of the class counts
			return len(q.classes) > 0
		}
		score := r.score(q, head, head.since, head.id)
		if q.best >= 0 {
			if score < q.score {
				continue
			}
			if b := &q.heads[q.best]; score == q.score && (head.since > b.since || head.since == b.since && head.id > b.id) {
				continue
			}
		}
		q.best, q.score = i, score
	}
	return q.best >= 0
}

// sortClasses makes the heap of a kind's classes, when more than its head is looked at.
func (r *round) sortClasses(q *kindQueue) {
	if q.sorted {
		return
	}
	q.sorted, q.classes = true, q.classes[:0]
	for i := range q.heads {
		head := &q.heads[i]
		c := classQueue{class: head.class, next: head.class.head}
		switch {
		case head.since > r.now:
			r.wake(head.since)
			continue
		case head.rare: // its deadline may have passed
			c.next--
			if !r.forward(q, &c) {
				continue
			}
		default: // what is known of the head says all, and its job need not be looked at
			c.score = r.score(q, head, head.since, head.id)
		}
		q.classes = append(q.classes, c)
	}
	heap.Init((*classHeap)(q))
}

// forward moves the class to its next job that may start now, and scores it.
func (r *round) forward(q *kindQueue, c *classQueue) bool {
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
		c.score = r.score(q, &q.heads[c.slot], e.since, e.id)
		return true
	}
	return false
}

// advance steps past the first job.
func (h *roundQueue) advance(r *round) {
	q := h.kinds[0]
	r.sortClasses(q)
	if !r.forward(q, &q.classes[0]) {
		h.dropClass(r)
		return
	}
	heap.Fix((*classHeap)(q), 0)
	heap.Fix(h, 0)
}

// dropClass takes the first job's class out of the round.
func (h *roundQueue) dropClass(r *round) {
	q := h.kinds[0]
	r.sortClasses(q)
	heap.Pop((*classHeap)(q))
	if len(q.classes) == 0 {
		heap.Pop(h)
		return
	}
	heap.Fix(h, 0)
}

// dropKind takes the first job's kind out of the round.
func (h *roundQueue) dropKind() { heap.Pop(h) }

// candidates puts the queue into the order in which jobs may go past those that
// have a reservation.
func (h *roundQueue) candidates(r *round) {
	if r.policy.Mode == EasySJBF || r.policy.Mode == Gbatch && r.policy.BackfillOrder == ByShortest {
		h.shortest = true
		heap.Init(h)
	}
}

// rejectRest fails the interactive jobs that strict order keeps from being
// looked at.
func (h *roundQueue) rejectRest(r *round) {
	for _, q := range h.kinds {
		if !q.interactive {
			continue
		}
		r.sortClasses(q)
		for i := range q.classes {
			r.rejectAll(&q.classes[i])
		}
	}
}

func (h *roundQueue) Len() int { return len(h.kinds) }
func (h *roundQueue) Less(i, j int) bool {
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
func (h *roundQueue) Swap(i, j int) { h.kinds[i], h.kinds[j] = h.kinds[j], h.kinds[i] }
func (h *roundQueue) Push(x any)    { h.kinds = append(h.kinds, x.(*kindQueue)) }
func (h *roundQueue) Pop() any {
	last := h.kinds[len(h.kinds)-1]
	h.kinds = h.kinds[:len(h.kinds)-1]
	return last
}

// top is the next job of the kind and its priority.
func (q *kindQueue) top() (int64, *entry) {
	if q.sorted {
		c := &q.classes[0]
		return c.score, c.jobs[c.next]
	}
	c := q.heads[q.best].class
	return q.score, c.jobs[c.head]
}

// classHeap is the classes of a kind that still have jobs to look at, by the
// priority of their next jobs: points, eligible time, number.
type classHeap kindQueue

func (h *classHeap) Len() int { return len(h.classes) }
func (h *classHeap) Less(i, j int) bool {
	a, b := &h.classes[i], &h.classes[j]
	if a.score != b.score {
		return a.score > b.score
	}
	return compareEntries(a.jobs[a.next], b.jobs[b.next]) < 0
}
func (h *classHeap) Swap(i, j int) { h.classes[i], h.classes[j] = h.classes[j], h.classes[i] }
func (h *classHeap) Push(x any)    { h.classes = append(h.classes, x.(classQueue)) }
func (h *classHeap) Pop() any {
	last := h.classes[len(h.classes)-1]
	h.classes = h.classes[:len(h.classes)-1]
	return last
}
