package control

import (
	"gbatch/internal/state"
	"gbatch/sched"
)

// interner keeps one copy of values that many jobs share.
type interner struct {
	shapes   interned[string, sched.Shape] // by their encoding, as requests are
	requests interned[string, state.Request]
	owners   interned[state.Owner, state.Owner]
}

func (in *interner) shape(s *sched.Shape) *sched.Shape {
	return in.shapes.of(string(state.Encode(s)), s)
}

func (in *interner) request(r state.Request) *state.Request {
	return in.requests.of(string(state.Encode(r)), &r)
}

func (in *interner) owner(o state.Owner) *state.Owner { return in.owners.of(o, &o) }

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
