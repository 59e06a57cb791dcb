package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/due"
)

// Decide plans one round: which waiting jobs start now, which get a place in
// the future, which running jobs are to be ended for others. The State is the
// same before and after.
func Decide(in Input) Plan {
	r := newRound(in)
	defer r.close()
	r.run(in.Last)
	return r.plan
}

func (r *round) run(last []Reservation) {
	r.stats.Waiting, r.stats.Running = len(r.s.waiting), len(r.s.running)
	r.stats.Classes, r.stats.Kinds = r.s.classCount, len(r.s.kindList)
	r.plan.classReasons, r.plan.kindReasons = map[uint64]waitReason{}, map[uint64]waitReason{}
	r.wake(r.s.due.Until(r.now, r.s.counts, func(d due.Moment) { r.expire(d.Job) }))
	r.usage.countTime(r.s)
	r.keep(last)
	r.fill()
	for !r.queue.empty() {
		if len(r.plan.Starts) >= r.policy.MaxStarts || r.stats.Evaluated >= r.policy.MaxEvaluated {
			r.stats.Truncated = true
			r.wake(r.now + 1)
			break
		}
		r.stats.Evaluated++
		if !r.step() {
			break
		}
	}
	r.finish()
}

// step looks at the first job of the queue. It returns false when no other job
// may start in this round.
func (r *round) step() bool {
	q, c, e := r.queue.first()
	kind := q.jobKind
	if hit, over := r.usage.overLimit(c); over {
		r.overtake(q, c, e, hit)
		return true
	}
	r.release(e.id)
	if !q.blocked || r.promises != nil {
		if kind, spots := r.findAny(kind); spots != nil {
			if kind.Shape.Whole() {
				if hit, over := r.usage.overLimitWith(c, kind.milliAt(spots)); over {
					r.overtake(q, c, e, hit)
					return true
				}
			}
			r.begin(kind, c, e, spots)
			return true
		}
		q.blocked = true
		q.why = r.whyBlocked(kind)
	}
	if kind.interactive {
		r.plan.classReasons[c.id] = waitReason{code: q.why.code, head: e.id, why: q.why}
		r.rejectInteractive(q)
		r.queue.dropClass(r)
		return true
	}
	if q.why.code == CodeNever || q.why.code == CodePartition {
		r.giveUp(q, e)
		return true
	}
	if r.policy.Mode == FCFS {
		r.plan.classReasons[c.id] = waitReason{code: q.why.code, head: e.id, why: q.why}
		r.plan.first = e.id
		return false
	}
	if r.reserved >= r.depth() {
		r.giveUp(q, e)
		return true
	}
	r.reserve(q, c, e)
	return true
}

// overtake lets a class that is over a limit step aside: it blocks nobody.
func (r *round) overtake(q *kindQueue, c *class, e *entry, hit limitHit) {
	r.plan.classReasons[c.id] = waitReason{code: hit.code(), head: e.id, limit: hit}
	r.rejectInteractive(q)
	r.queue.dropClass(r)
}

// giveUp takes the kind out of the round: there is no room for any of its jobs.
func (r *round) giveUp(q *kindQueue, e *entry) {
	r.plan.kindReasons[q.id] = waitReason{code: q.why.code, head: e.id, why: q.why}
	r.queue.dropKind()
}

// depth is how many blocked jobs get a reservation.
func (r *round) depth() int {
	switch r.policy.Mode {
	case FCFS:
		return 0
	case Easy, EasySJBF:
		return 1
	case Conservative:
		return 1 << 30
	}
	return r.policy.BackfillReservations
}

func (r *round) begin(kind *jobKind, c *class, e *entry, spots []spot) {
	r.plan.Starts = append(r.plan.Starts, Start{Job: e.id, Ranks: kind.allocations(spots), Limit: kind.granted(c), Partition: kind.partitionAt(spots), Backfilled: r.reserved > 0, Until: r.ranking.until(e)})
	r.start(kind, c, e, spots)
	r.queue.advance(r)
}

// reserve plans the job for the earliest time at which there is room.
func (r *round) reserve(q *kindQueue, c *class, e *entry) {
	p := r.soonest(e, r.now)
	if halts := r.preempt(q.jobKind, e, p.at, p.spots != nil); len(halts) > 0 {
		r.plan.Halts = append(r.plan.Halts, halts...)
		p = r.soonest(e, r.now)
	}
	if _, ok := r.plan.classReasons[c.id]; !ok {
		r.plan.classReasons[c.id] = waitReason{code: q.why.code, head: e.id, why: q.why}
	}
	if p.spots == nil { // nothing that is known will make room: a drained node, or a window without end
		r.giveUp(q, e)
		return
	}
	r.reserved++
	r.wake(p.at)
	r.book(p)
	r.queue.advance(r)
	if r.reserved == r.depth() {
		r.queue.candidates(r)
	}
}

// expire rejects a job whose deadline has passed.
func (r *round) expire(id JobID) {
	e := r.s.waiting[id]
	r.plan.Rejects = append(r.plan.Rejects, Reject{id, Reason{Code: CodeDeadline, Text: deadlineText(e, r.now)}})
}

// rejectInteractive fails the jobs of the kind's first class if they are
// interactive: they would have to wait.
func (r *round) rejectInteractive(q *kindQueue) {
	if q.interactive {
		r.sortClasses(q)
		r.rejectAll(&q.classes[0])
	}
}

// rejectAll fails the jobs of a class that were not looked at.
func (r *round) rejectAll(c *classQueue) {
	for _, e := range c.jobs[c.next:] {
		if e != nil && e.since <= r.now && e.deadline() > r.now {
			why, ok := r.plan.classReasons[c.id]
			if !ok {
				why = waitReason{code: CodePriority, head: r.plan.first}
			}
			r.plan.Rejects = append(r.plan.Rejects, Reject{e.id, Reason{Code: CodeInteractive, Text: "no room at once: " + why.words(c.shape)}})
		}
	}
}

func (r *round) wake(at Time) {
	if at < Never && (r.plan.Wake == 0 || at < r.plan.Wake) {
		r.plan.Wake = at
	}
}

func (r *round) finish() {
	if r.plan.first != 0 {
		r.queue.rejectRest(r)
	}
	slices.SortFunc(r.plan.Rejects, func(a, b Reject) int { return cmp.Compare(a.Job, b.Job) })
	r.plan.Rejects = slices.CompactFunc(r.plan.Rejects, func(a, b Reject) bool { return a.Job == b.Job })
	for _, w := range r.s.index.Windows { // a minimum: order does not matter
		for _, span := range w.Spans() {
			for _, t := range [...]Time{span.Start, span.End} {
				if t > r.now {
					r.wake(t)
				}
			}
		}
	}
}
