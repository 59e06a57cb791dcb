// Package due keeps the moments by which waiting jobs must have started, the next
// first. It is pure.
package due

import (
	"container/heap"

	"gbatch/sched/spec"
)

// Moment is one by which a waiting job must have started.
type Moment struct {
	At  spec.Time
	Job spec.JobID
}

// Queue is a heap of them. Jobs that left the queue stay in it until they
// are more than half of it.
type Queue []Moment

func (d Queue) Len() int { return len(d) }
func (d Queue) Less(i, j int) bool {
	return d[i].At < d[j].At || d[i].At == d[j].At && d[i].Job < d[j].Job
}
func (d Queue) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *Queue) Push(x any)   { *d = append(*d, x.(Moment)) }
func (d *Queue) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// Add puts a moment in.
func (d *Queue) Add(x Moment) { heap.Push(d, x) }

// Trim forgets those that do not count any more once there are more than
// twice as many as waiting jobs.
func (d *Queue) Trim(waiting int, counts func(Moment) bool) {
	if len(*d) < 2*waiting+64 {
		return
	}
	kept := (*d)[:0]
	for _, x := range *d {
		if counts(x) {
			kept = append(kept, x)
		}
	}
	*d = kept
	heap.Init(d)
}

// Until calls f for all that count and are at now or before, and returns the
// first that is later; Never if there is none.
func (d Queue) Until(now spec.Time, counts func(Moment) bool, f func(Moment)) spec.Time {
	next := spec.Never
	var walk func(int)
	walk = func(i int) {
		if i >= len(d) || d[i].At > now && d[i].At >= next {
			return
		}
		switch {
		case !counts(d[i]):
		case d[i].At > now:
			next = d[i].At
			return
		default:
			f(d[i])
		}
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	return next
}
