package sched

import "container/heap"

// due is a moment by which a waiting job must have started.
type due struct {
	at Time
	id JobID
}

// deadlines is a heap of them. Jobs that left the queue stay in it until they
// are more than half of it.
type deadlines []due

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].id < d[j].id
}
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)   { *d = append(*d, x.(due)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func (d *deadlines) push(x due) { heap.Push(d, x) }

// settle forgets those that do not count any more once there are more than
// twice as many as waiting jobs.
func (d *deadlines) settle(waiting int, counts func(due) bool) {
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

// until calls f for all that count and are at now or before, and returns the
// first that is later; Never if there is none.
func (d deadlines) until(now Time, counts func(due) bool, f func(due)) Time {
	next := Never
	var walk func(int)
	walk = func(i int) {
		if i >= len(d) || d[i].at > now && d[i].at >= next {
			return
		}
		switch {
		case !counts(d[i]):
		case d[i].at > now:
			next = d[i].at
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
