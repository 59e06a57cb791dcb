package chaos

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Members that lack entries which are dropped get a copy of a store. It is made, packed, taken and opened by the production's.

// copied is a copy of a store with all up to an entry.
type copied struct {
	index int
	term  uint64
	seats seats
	files []byte // packed; nil: there is no copy
}

// So many entries after the last copy another one is made, and so many before it are kept.
const (
	copyAfter   = 60
	entriesKept = 15
)

// sink takes a copy that is made.
type sink struct{ bytes.Buffer }

func (*sink) Close() error  { return nil }
func (*sink) Cancel() error { return nil }
func (*sink) ID() string    { return "copy" }

// makeCopy makes a copy of the store when it is time, and drops the entries that it has. It is called between two entries.
func (e *elector) makeCopy() {
	e.mu.Lock()
	c := copied{index: e.applied, term: e.kept.termAt(e.applied)}
	c.seats, _ = e.kept.of(e.applied)
	before := e.kept.copy
	e.mu.Unlock()
	if c.index-before.index < copyAfter {
		return
	}
	snap, err := e.fsm.Snapshot()
	if err != nil {
		return // it ends, and says why, or reads what its store has
	}
	var to sink
	err = snap.Persist(&to)
	snap.Release()
	if err != nil {
		e.w.note("controller %d cannot copy its store: %v", e.m.id, err)
		return
	}
	c.files = to.Bytes()
	if e.w.plant.staleCopy {
		c.files = before.files
	}
	if e.sync() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept.copy = c
	e.kept.drop(c.index - entriesKept)
}

// drop drops the entries up to one.
func (k *kept) drop(to int) {
	if to <= k.first {
		return
	}
	seats, _ := k.of(to)
	k.first, k.firstTerm, k.seats, k.log = to, k.termAt(to), seats, append([]*raft.Log(nil), k.log[to-k.first:]...)
}

// begin has the log go on after a copy, and keep what comes after that where it belongs to it.
func (k *kept) begin() {
	c := k.copy
	if c.index >= k.first && k.termAt(c.index) == c.term {
		return
	}
	k.first, k.firstTerm, k.seats, k.log, k.synced = c.index, c.term, c.seats, nil, c.index
}

// install takes a copy of a store from who leads.
func (e *elector) install(q entries) answer {
	if e.m.gate(e.ctx, fmt.Sprint("copy", q.from, q.term)) != nil {
		return answer{}
	}
	e.mu.Lock()
	if !e.hears(q.term, q.from) {
		defer e.mu.Unlock()
		return answer{term: e.kept.term}
	}
	if e.applied >= q.copy.index { // it came again
		defer e.mu.Unlock()
		return answer{term: e.kept.term, yes: true, last: e.applied}
	}
	e.mu.Unlock()
	taken := make(chan error, 1)
	if e.between(func() { taken <- e.take(*q.copy) }) != nil {
		return answer{}
	}
	select {
	case err := <-taken:
		if err != nil {
			return answer{}
		}
	case <-e.ctx.Done():
		return answer{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return answer{term: e.kept.term, yes: true, last: q.copy.index}
}

// take is called between two entries.
func (e *elector) take(c copied) error {
	if e.sync() != nil {
		return e.ctx.Err()
	}
	e.mu.Lock()
	if e.applied >= c.index {
		e.mu.Unlock()
		return nil
	}
	e.kept.copy = c // as it is on the disk before the store is replaced
	e.mu.Unlock()
	if err := e.fsm.Restore(io.NopCloser(bytes.NewReader(c.files))); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept.begin()
	e.commit, e.applied = max(e.commit, c.index), c.index
	e.w.note("controller %d took a copy of the store up to %d", e.m.id, c.index)
	e.w.audit.saw("copies taken")
	return nil
}
