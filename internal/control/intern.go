package control

import (
	"gbatch/internal/state"
	"gbatch/sched"
)

// interner keeps one copy of values that many jobs share. It is emptied when
// it grows large, which costs memory and never correctness.
type interner struct {
	shapes   map[string]*sched.Shape
	requests map[string]*state.Request
	owners   map[state.Owner]*state.Owner
}

const internMax = 1 << 16

func (in *interner) shape(s *sched.Shape) *sched.Shape {
	if in.shapes == nil || len(in.shapes) > internMax {
		in.shapes = map[string]*sched.Shape{}
	}
	k := state.Encode(s)
	if old, ok := in.shapes[string(k)]; ok {
		return old
	}
	in.shapes[string(k)] = s
	return s
}

func (in *interner) request(r state.Request) *state.Request {
	if in.requests == nil || len(in.requests) > internMax {
		in.requests = map[string]*state.Request{}
	}
	k := state.Encode(r)
	if old, ok := in.requests[string(k)]; ok {
		return old
	}
	in.requests[string(k)] = &r
	return &r
}

func (in *interner) owner(o state.Owner) *state.Owner {
	if in.owners == nil || len(in.owners) > internMax {
		in.owners = map[state.Owner]*state.Owner{}
	}
	if old, ok := in.owners[o]; ok {
		return old
	}
	in.owners[o] = &o
	return &o
}
