package state

import (
	"gbatch/sched"
)

// Interner keeps one copy of values that many jobs share.
type Interner struct {
	shapes   interned[string, sched.Shape] // by their encoding, as requests are
	requests interned[string, Request]
	owners   interned[Owner, Owner]
}

// Shape is the kept copy of a shape.
func (in *Interner) Shape(s *sched.Shape) *sched.Shape {
	return in.shapes.of(string(Encode(s)), s)
}

// Request is the kept copy of a request.
func (in *Interner) Request(r Request) *Request {
	return in.requests.of(string(Encode(r)), &r)
}

// Owner is the kept copy of an owner.
func (in *Interner) Owner(o Owner) *Owner { return in.owners.of(o, &o) }

// interned is emptied when it grows large, which costs memory and never
// correctness.
type interned[K comparable, V any] map[K]*V

const internMax = 1 << 16

// of is the first value of a key: v, if there is none.
func (m *interned[K, V]) of(k K, v *V) *V {
	if *m == nil || len(*m) > internMax {
		*m = interned[K, V]{}
	}
	if old, ok := (*m)[k]; ok {
		return old
	}
	(*m)[k] = v
	return v
}
