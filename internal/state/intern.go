package state

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gbatch/sched"
)

// Interner keeps one copy of values that many jobs share.
type Interner struct {
	shapes   interned[string, sched.Shape] // by their encoding, as requests are
	requests interned[string, Request]
	owners   interned[Owner, Owner]
	places   interned[placeKey, place]
	reading  []jsonv2.Options
}

// Job reads a value stored under KindJob as DecodeJob does, but takes its request and owner
// from those that are kept, and is settled. A request that was read before is not read again.
func (in *Interner) Job(v []byte) (*Job, error) {
	if in.reading == nil {
		in.reading = []jsonv2.Options{jsonv1.DefaultOptionsV1(), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(in.readRequest))}
	}
	j, err := decodeJob(v, in.reading...)
	if err != nil {
		return nil, err
	}
	j.Owner = in.Owner(*j.Owner)
	j.Settle(in)
	return j, nil
}

// readRequest reads a request, which stands in a record as Encode wrote it.
func (in *Interner) readRequest(d *jsontext.Decoder, to **Request) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if kept, ok := in.requests[string(raw)]; ok {
		*to = kept
		return nil
	}
	var r *Request
	if err := jsonv2.Unmarshal(raw, &r, jsonv1.DefaultOptionsV1()); err != nil {
		return err
	}
	if r != nil && r.Shape != nil {
		r.Shape = in.Shape(r.Shape)
		r = in.requests.of(string(raw), r)
	}
	*to = r
	return nil
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
