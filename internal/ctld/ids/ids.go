// Package ids gives each user a range of numbers of users and groups, which the
// user's containers have on all nodes and nobody else's ever. It does not know
// who has an account: a node checks a range against its own.
package ids

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"

	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// Book is what was given to whom.
type Book struct {
	from   func() uint32 // where ranges begin that are given from now on
	commit func(state.Record) error

	mu     sync.Mutex               // never held while a record is made durable
	first  map[string]uint32        // by user
	taken  map[uint32]bool          // those that are being given, too
	giving map[string]chan struct{} // by user: closed when the record is durable or failed
}

// given is a record: files may have these ids, so it is never taken back.
type given struct {
	First uint32 `json:"first"`
}

// Open reads what was given before.
func Open(st interface {
	All(state.Kind, func(state.Record) error) error
}, l *loop.Loop, from func() uint32) (*Book, error) {
	b := newBook(from, func(r state.Record) error { return l.Commit(context.Background(), "", "", r) }) // nobody asked for it: no entry
	err := st.All(state.KindIDs, func(r state.Record) error {
		var g given
		if err := json.Unmarshal(r.Value, &g); err != nil {
			return fmt.Errorf("decode the ids of a user: %w", err)
		}
		b.first[r.Name], b.taken[g.First] = g.First, true
		return nil
	})
	return b, err
}

func newBook(from func() uint32, commit func(state.Record) error) *Book {
	return &Book{from: from, commit: commit, first: map[string]uint32{}, taken: map[uint32]bool{}, giving: map[string]chan struct{}{}}
}

// Of is the first number of a user's range. One who has none is given one, which is
// durable when Of returns; 0 means that all are taken. uid is the user's on this
// machine: with it, or else the name, the search begins, so that a controller
// that lost its records mostly gives the same, and so did nodes before it.
func (b *Book) Of(user string, uid *uint32) (uint32, error) {
	b.mu.Lock()
	for b.giving[user] != nil {
		done := b.giving[user]
		b.mu.Unlock()
		<-done
		b.mu.Lock()
	}
	first, ok := b.first[user]
	if !ok {
		first = b.free(user, uid)
	}
	if ok || first == 0 {
		b.mu.Unlock()
		return first, nil
	}
	done := make(chan struct{})
	b.taken[first], b.giving[user] = true, done
	b.mu.Unlock()
	err := b.commit(state.Record{Kind: state.KindIDs, Name: user, Value: wire.Encode(given{first})})
	b.mu.Lock()
	defer b.mu.Unlock()
	defer close(done)
	delete(b.giving, user)
	if err != nil {
		delete(b.taken, first)
		return 0, err
	}
	b.first[user] = first
	return first, nil
}

// free is the first number of a range that nobody has, 0 where all are taken.
func (b *Book) free(user string, uid *uint32) uint32 {
	from := b.from()
	ranges := (node.IDsEnd - from) / node.IDRange
	at := uint32(0)
	if uid != nil && *uid != 0 {
		at = *uid % ranges
	} else {
		h := fnv.New32a()
		h.Write([]byte(user))
		at = h.Sum32() % ranges
	}
	for i := range ranges {
		if first := from + (at+i)%ranges*node.IDRange; !b.taken[first] {
			return first
		}
	}
	return 0
}
