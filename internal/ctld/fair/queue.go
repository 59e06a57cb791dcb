// Package fair divides what there is among users: whose turn it is, and who has
// asked too often. It has no clock and no locks; who uses it brings both.
package fair

import "slices"

// Queue holds what waits, each with its user and a cost, and gives it out such
// that users who have something to do get the same cost each. What one user has
// is given out in the order in which it came. Create it with NewQueue.
type Queue[T any] struct {
	most  int // that wait
	len   int
	flows map[string]*flow[T]
	ring  []*flow[T] // those with something, in the order of their turns
}

// flow is what waits of one user. It is in the queue while there is something.
type flow[T any] struct {
	user   string
	items  []item[T]
	credit int // cost that may be taken; below 0 after something dear
}

type item[T any] struct {
	value T
	cost  int
}

// NewQueue is one in which so many may wait.
func NewQueue[T any](most int) *Queue[T] {
	return &Queue[T]{most: most, flows: map[string]*flow[T]{}}
}

// Len is how many wait.
func (q *Queue[T]) Len() int { return q.len }

// Put lets something wait. If the queue is full, what came last of the user with
// the most is put out for it, which may be the new one: ok is false then, and out
// is what does not wait.
func (q *Queue[T]) Put(user string, cost int, value T) (out T, ok bool) {
	f := q.flows[user]
	if q.len >= q.most {
		largest := slices.MaxFunc(q.ring, func(a, b *flow[T]) int { return len(a.items) - len(b.items) })
		if f == largest || f != nil && len(f.items) >= len(largest.items) {
			return value, false
		}
		out = largest.items[len(largest.items)-1].value
		largest.items = largest.items[:len(largest.items)-1]
		q.len--
		if len(largest.items) == 0 {
			q.drop(slices.Index(q.ring, largest))
		}
		q.put(user, item[T]{value, cost})
		return out, false
	}
	q.put(user, item[T]{value, cost})
	return out, true
}

func (q *Queue[T]) put(user string, x item[T]) {
	f := q.flows[user]
	if f == nil {
		f = &flow[T]{user: user}
		q.flows[user] = f
		q.ring = append(q.ring, f)
	}
	f.items = append(f.items, x)
	q.len++
}

func (q *Queue[T]) drop(at int) {
	delete(q.flows, q.ring[at].user)
	q.ring = slices.Delete(q.ring, at, at+1)
}

// Take gives out at most so many, and of one user about as much cost as share at
// most. There is something in it if anything waits. Who did not get a turn has the
// next one first.
func (q *Queue[T]) Take(most, share int) []T {
	var out []T
	for len(out) == 0 && len(q.ring) > 0 {
		share = max(min(share, most/len(q.ring)), 1)
		for range len(q.ring) {
			if len(out) >= most {
				break
			}
			f := q.ring[0]
			q.ring = q.ring[1:]
			f.credit = min(f.credit+share, share)
			n := 0
			for ; n < len(f.items) && f.credit > 0 && len(out) < most; n++ {
				f.credit -= max(f.items[n].cost, 1)
				out = append(out, f.items[n].value)
			}
			clear(f.items[:n]) // or they would stay in memory
			f.items = f.items[n:]
			q.len -= n
			if len(f.items) == 0 {
				delete(q.flows, f.user)
			} else {
				q.ring = append(q.ring, f)
			}
		}
	}
	return out
}
