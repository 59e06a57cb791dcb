package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"gbatch/internal/ctld/follow"
	"gbatch/internal/replica"
)

// The log that several controllers have in common is raft's in production. Its chance is one source for all, so no seed would have
// one history with it; here is a plain one of the same rules. What is applied, and who proposes, is the production's.

// Times of it.
const (
	beat     = 200 * time.Millisecond // who leads is heard of so often
	patience = time.Second            // for one that is not
	waits    = time.Second            // for an answer of another member
	batch    = 64                     // entries in a message at most
)

// kept is what a member has of the log on its disk. The entries up to the first, which a copy of a store has, are
// dropped.
type kept struct {
	there     bool // the directory is
	term      uint64
	voted     int    // for which member in that term; -1: for none
	from      int    // the entry by which it was added: before it has that it votes for nobody
	first     int    // the entry before the log
	firstTerm uint64 // of that
	seats     seats  // after that
	log       []*raft.Log
	synced    int // up to this entry all are there after a power cut
	copy      copied
}

// after is kept after the end of the process, with or without what was not synced.
func (k *kept) after(unsynced int) *kept {
	out := *k
	if unsynced == 0 {
		out.log = out.log[:out.synced-out.first]
	}
	out.log = append([]*raft.Log(nil), out.log...)
	out.synced = out.last()
	return &out
}

// votes says whether the member votes.
func (k *kept) votes() bool { return k.last() >= k.from }

// last is the last entry.
func (k *kept) last() int { return k.first + len(k.log) }

// entry is one that is there.
func (k *kept) entry(index int) *raft.Log { return k.log[index-k.first-1] }

// termAt is that of an entry, 0 of one that is not there.
func (k *kept) termAt(index int) uint64 {
	switch {
	case index == k.first:
		return k.firstTerm
	case index < k.first || index > k.last():
		return 0
	}
	return k.entry(index).Term
}

type role int

const (
	follows role = iota
	stands
	leads
)

// elector is a process's part in the log.
type elector struct {
	w       *world
	m       *member
	ctx     context.Context // ends with the process
	kill    context.CancelFunc
	disk    *disk
	fsm     *replica.Machine
	jobs    *follow.Jobs  // in step with its store while it does not lead
	elected chan struct{} // it leads
	agreed  chan struct{} // there is more to apply

	mu      sync.Mutex // not held while time passes
	kept    *kept
	role    role
	leader  int           // -1: not known
	heard   time.Duration // from it, or from one that got this one's vote
	commit  int
	applied int
	next    []int
	match   []int
	contact []time.Duration
	wake    []chan struct{}
	waiting map[int]chan any // for the answer to an entry
	lost    func()           // what to do when it leads no more
	now     chan func()      // what is to be done between two entries
	program int              // its version
}

var errNotLeading = errors.New("this member does not lead")

func newElector(m *member, ctx context.Context, fsm *replica.Machine) *elector {
	n := len(m.w.members)
	e := &elector{w: m.w, m: m, ctx: ctx, fsm: fsm, leader: -1, heard: m.w.now(), elected: make(chan struct{}, 1), agreed: make(chan struct{}, 1), now: make(chan func()),
		next: make([]int, n), match: make([]int, n), contact: make([]time.Duration, n), waiting: map[int]chan any{}}
	for range n {
		e.wake = append(e.wake, make(chan struct{}, 1))
	}
	return e
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is told already
	}
}

// sync has time pass as for what is written to the disk.
func (e *elector) sync() error {
	e.disk.syncs.Add(1)
	return sleep(e.ctx, syncTakes+time.Duration(e.disk.slow.Load()))
}

// run looks whether another member leads, until the process ends.
func (e *elector) run() {
	for n := 0; sleep(e.ctx, between(e.w.draw("election", e.m.id, n), patience, 2*patience)) == nil && e.m.gate(e.ctx, "run") == nil; n++ {
		e.mu.Lock()
		if e.role == leads && !e.majority(func(i int) bool { return e.w.now()-e.contact[i] < patience }) {
			e.resign()
		}
		due := e.role != leads && e.w.now()-e.heard >= patience
		e.mu.Unlock()
		if due {
			e.stand(false)
		}
	}
}

// resign is called with the lock.
func (e *elector) resign() {
	if e.role == leads {
		e.w.note("controller %d leads no more", e.m.id)
	}
	e.role, e.leader = follows, -1
	for i, c := range e.waiting {
		c <- errNotLeading
		delete(e.waiting, i)
	}
	if e.lost != nil {
		e.lost()
	}
	e.lost = nil
}

// later is called with the lock, when another member is of a term.
func (e *elector) later(term uint64) {
	if term > e.kept.term {
		e.kept.term, e.kept.voted = term, -1
		e.resign()
	}
}

// leads says whether this member takes itself for the one that leads.
func (e *elector) leads() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.role == leads
}

// onLost has f called when this member leads no more. False: it does not lead now.
func (e *elector) onLost(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.role == leads {
		e.lost = f
	}
	return e.role == leads
}

// outdated says whether another one leads, which one that stands still as it begins to has not heard of yet. What it knows may be of
// before; it answers nobody, as it asks the others first.
func (e *elector) outdated() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.role != leads || e.kept.term < e.w.ledIn.Load()
}

// lead is called with the lock.
func (e *elector) lead() {
	e.w.note("controller %d leads in term %d", e.m.id, e.kept.term)
	e.role, e.leader = leads, e.m.id
	e.w.ledIn.Store(max(e.w.ledIn.Load(), e.kept.term))
	for i := range e.next {
		e.next[i], e.match[i], e.contact[i] = e.kept.last()+1, 0, e.w.now()
	}
	term := e.kept.term
	for i := range e.w.members {
		if i != e.m.id {
			e.w.wg.Go(func() { e.replicate(i, term) })
		}
	}
	signal(e.elected)
}

// replicate brings another member to where this one is, as long as this one leads in a term.
func (e *elector) replicate(to int, term uint64) {
	for {
		// What is sent is what is there at a moment of its own, not while others add to it.
		if sleep(e.ctx, between(e.w.draw("send", e.m.id, to), time.Microsecond, 100*time.Microsecond)) != nil || e.m.gate(e.ctx, fmt.Sprint("send", to)) != nil {
			return
		}
		e.mu.Lock()
		if e.role != leads || e.kept.term != term {
			e.mu.Unlock()
			return
		}
		select {
		case <-e.wake[to]: // for what is sent now
		default:
		}
		seated := e.seat(to) != away
		q := e.message(e.next[to])
		e.mu.Unlock()
		if seated && e.send(to, q) {
			continue
		}
		late := time.NewTimer(beat)
		select {
		case <-e.wake[to]:
		case <-late.C:
		case <-e.ctx.Done():
		}
		late.Stop()
	}
}

// send says whether there is more to send at once.
func (e *elector) send(to int, q entries) (more bool) {
	kind, serve := "append", func(o *elector) answer { return o.append(q) }
	if q.copy != nil {
		kind, serve = "copy", func(o *elector) answer { return o.install(q) }
	}
	a, err := tell(e, to, kind, serve)
	e.mu.Lock()
	defer e.mu.Unlock()
	return err == nil && e.answered(to, q, a)
}

// message is called with the lock. Whoever lacks entries that are dropped is sent the last copy of the store.
func (e *elector) message(from int) entries {
	q := entries{term: e.kept.term, from: e.m.id, commit: e.commit}
	if from <= e.kept.first {
		c := e.kept.copy
		q.copy = &c
		return q
	}
	if from > e.kept.last()+1 {
		e.w.audit.violation("controller %d leads, and entries are gone that it had sent: it has them up to %d", e.m.id, e.kept.last())
		from = e.kept.last() + 1
	}
	end := min(e.kept.last(), from-1+batch)
	q.prev, q.prevTerm = from-1, e.kept.termAt(from-1)
	q.list = append([]*raft.Log(nil), e.kept.log[from-1-e.kept.first:end-e.kept.first]...)
	return q
}

// answered is called with the lock. More: there is more to send at once.
func (e *elector) answered(to int, q entries, a answer) (more bool) {
	e.later(a.term)
	if e.role != leads || e.kept.term != q.term || a.term != q.term {
		return false
	}
	e.contact[to] = e.w.now()
	if !a.yes {
		e.next[to] = max(1, min(a.last+1, e.next[to]-1))
		return true
	}
	if a.last > e.kept.last() {
		e.w.audit.violation("controller %d has entries of term %d up to %d, and controller %d, which leads, up to %d", to, a.term, a.last, e.m.id, e.kept.last())
		return false
	}
	e.match[to] = max(e.match[to], a.last)
	e.next[to] = e.match[to] + 1
	e.advance()
	return e.next[to] <= e.kept.last()
}

// advance agrees on what a majority has on its disks. It is called with the lock.
func (e *elector) advance() {
	for i := e.kept.last(); i > e.commit && e.kept.termAt(i) == e.kept.term; i-- {
		if e.kept.synced < i || !e.w.plant.early && !e.majority(func(m int) bool { return e.match[m] >= i }) {
			continue
		}
		e.commit = i
		signal(e.agreed)
		break
	}
}

// entries is what one that leads sends to another one.
type entries struct {
	term     uint64
	from     int
	prev     int
	prevTerm uint64
	list     []*raft.Log
	commit   int
	copy     *copied // in place of entries; nil: none
}

type answer struct {
	term uint64
	yes  bool
	last int
}

// hears is called with the lock, when another member says that it leads. False: it does not.
func (e *elector) hears(term uint64, from int) bool {
	if term < e.kept.term && !e.w.plant.anyTerm {
		return false
	}
	e.later(term)
	if e.role == stands {
		e.role = follows
	}
	e.leader, e.heard = from, e.w.now()
	return true
}

// append takes entries of who leads.
func (e *elector) append(q entries) answer {
	if e.m.gate(e.ctx, fmt.Sprint("append", q.from, q.term, q.prev, len(q.list))) != nil {
		return answer{}
	}
	e.mu.Lock()
	if !e.hears(q.term, q.from) {
		defer e.mu.Unlock()
		return answer{term: e.kept.term}
	}
	if q.prev > e.kept.last() || q.prev >= e.kept.first && e.kept.termAt(q.prev) != q.prevTerm {
		defer e.mu.Unlock()
		return answer{term: e.kept.term, last: min(e.kept.last(), q.prev-1)}
	}
	at, fresh := q.prev, []*raft.Log(nil)
	for _, l := range q.list {
		if at++; at <= e.kept.first || at <= e.kept.last() && e.kept.termAt(at) == l.Term {
			continue
		}
		e.kept.log = append(e.kept.log[:at-1-e.kept.first:at-1-e.kept.first], l)
		e.kept.synced, fresh = min(e.kept.synced, at-1), append(fresh, l)
	}
	at = max(at, e.kept.first)
	term := e.kept.termAt(at)
	e.mu.Unlock()
	if fresh != nil && e.sync() != nil {
		return answer{}
	}
	for _, l := range fresh {
		e.hear(l)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if at >= e.kept.first && e.kept.termAt(at) != term {
		return answer{term: e.kept.term} // another one has led meanwhile
	}
	e.kept.synced = max(e.kept.synced, at)
	if to := min(q.commit, at); to > e.commit {
		e.commit = to
		signal(e.agreed)
	}
	return answer{term: e.kept.term, yes: true, last: at}
}

// hear has the store's machine hear of an entry that is on this member's disk.
func (e *elector) hear(l *raft.Log) {
	if l.Type == raft.LogCommand {
		e.fsm.Hear(e.reads(l))
	}
}

// between has something done while no entry is applied.
func (e *elector) between(do func()) error {
	select {
	case e.now <- do:
		return nil
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
}

// applies applies what was agreed on, in order, until the process ends. Copies are made and taken between two entries.
func (e *elector) applies() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case do := <-e.now:
			do()
			continue
		case <-e.agreed:
		}
		for e.m.gate(e.ctx, "apply") == nil && e.applyNext() {
			e.makeCopy()
		}
	}
}

// applyNext says whether there was an entry to apply.
func (e *elector) applyNext() bool {
	e.mu.Lock()
	if e.applied >= e.commit {
		e.mu.Unlock()
		return false
	}
	e.applied++
	i, l := e.applied, e.kept.entry(e.applied)
	e.w.trace("controller %d applies entry %d", e.m.id, i)
	e.mu.Unlock()
	var said any
	if l.Type == raft.LogCommand {
		e.w.audit.applied(l)
		said = e.fsm.Apply(e.reads(l))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.waiting[i]; c != nil {
		c <- said
		delete(e.waiting, i)
	}
	return true
}
