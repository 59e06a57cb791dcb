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

// kept is what a member has of the log on its disk.
type kept struct {
	term   uint64
	voted  int // for which member in that term; -1: for none
	log    []*raft.Log
	synced int // so many entries are there after a power cut
}

// after is kept after the end of the process, with or without what was not synced.
func (k *kept) after(unsynced int) *kept {
	out := *k
	if unsynced == 0 {
		out.log = out.log[:out.synced]
	}
	out.log, out.synced = append([]*raft.Log(nil), out.log...), len(out.log)
	return &out
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
}

var errNotLeading = errors.New("this member does not lead")

func newElector(m *member, ctx context.Context, fsm *replica.Machine) *elector {
	n := m.w.controllers
	e := &elector{w: m.w, m: m, ctx: ctx, fsm: fsm, leader: -1, heard: m.w.now(), elected: make(chan struct{}, 1), agreed: make(chan struct{}, 1),
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
			e.stand()
		}
	}
}

// majority counts this member too.
func (e *elector) majority(has func(i int) bool) bool {
	n := 1
	for i := range e.w.controllers {
		if i != e.m.id && has(i) {
			n++
		}
	}
	return 2*n > e.w.controllers
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

// stand asks the others for their votes.
func (e *elector) stand() {
	e.mu.Lock()
	e.kept.term++
	e.kept.voted, e.role, e.leader, e.heard = e.m.id, stands, -1, e.w.now()
	q := ballot{term: e.kept.term, from: e.m.id, last: len(e.kept.log), lastTerm: e.termAt(len(e.kept.log))}
	e.mu.Unlock()
	if e.sync() != nil {
		return
	}
	votes := 1
	for i := range e.w.controllers {
		if i == e.m.id {
			continue
		}
		e.w.wg.Go(func() {
			a, err := tell(e, i, "vote", func(o *elector) answer { return o.vote(q) })
			e.mu.Lock()
			defer e.mu.Unlock()
			if err != nil {
				return
			}
			e.later(a.term)
			if !a.yes || e.role != stands || e.kept.term != q.term {
				return
			}
			if votes++; 2*votes > e.w.controllers {
				e.lead()
			}
		})
	}
}

// termAt is that of an entry, 0 before the first.
func (e *elector) termAt(index int) uint64 {
	if index == 0 || index > len(e.kept.log) {
		return 0
	}
	return e.kept.log[index-1].Term
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

// lead is called with the lock.
func (e *elector) lead() {
	e.w.note("controller %d leads in term %d", e.m.id, e.kept.term)
	e.role, e.leader = leads, e.m.id
	for i := range e.next {
		e.next[i], e.match[i], e.contact[i] = len(e.kept.log)+1, 0, e.w.now()
	}
	term := e.kept.term
	for i := range e.w.controllers {
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
		q := e.message(e.next[to])
		e.mu.Unlock()
		a, err := tell(e, to, "append", func(o *elector) answer { return o.append(q) })
		e.mu.Lock()
		more := false
		if err == nil {
			more = e.answered(to, q, a)
		}
		e.mu.Unlock()
		if more {
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

// message is called with the lock.
func (e *elector) message(from int) entries {
	end := min(len(e.kept.log), from-1+batch)
	return entries{term: e.kept.term, from: e.m.id, prev: from - 1, prevTerm: e.termAt(from - 1), list: append([]*raft.Log(nil), e.kept.log[from-1:end]...), commit: e.commit}
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
	e.match[to] = max(e.match[to], a.last)
	e.next[to] = e.match[to] + 1
	e.advance()
	return e.next[to] <= len(e.kept.log)
}

// advance agrees on what a majority has on its disks. It is called with the lock.
func (e *elector) advance() {
	for i := len(e.kept.log); i > e.commit && e.termAt(i) == e.kept.term; i-- {
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
}

// ballot asks for a vote.
type ballot struct {
	term     uint64
	from     int
	last     int
	lastTerm uint64
}

type answer struct {
	term uint64
	yes  bool
	last int
}

// append takes entries of who leads.
func (e *elector) append(q entries) answer {
	if e.m.gate(e.ctx, fmt.Sprint("append", q.from, q.term, q.prev, len(q.list))) != nil {
		return answer{}
	}
	e.mu.Lock()
	if q.term < e.kept.term && !e.w.plant.anyTerm {
		defer e.mu.Unlock()
		return answer{term: e.kept.term}
	}
	e.later(q.term)
	if e.role == stands {
		e.role = follows
	}
	e.leader, e.heard = q.from, e.w.now()
	if q.prev > len(e.kept.log) || e.termAt(q.prev) != q.prevTerm {
		defer e.mu.Unlock()
		return answer{term: e.kept.term, last: min(len(e.kept.log), q.prev-1)}
	}
	at, fresh := q.prev, false
	for _, l := range q.list {
		if at++; at <= len(e.kept.log) && e.termAt(at) == l.Term {
			continue
		}
		e.kept.log = append(e.kept.log[:at-1:at-1], l)
		e.kept.synced, fresh = min(e.kept.synced, at-1), true
	}
	term := e.termAt(at)
	e.mu.Unlock()
	if fresh && e.sync() != nil {
		return answer{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.termAt(at) != term {
		return answer{term: e.kept.term} // another one has led meanwhile
	}
	e.kept.synced = max(e.kept.synced, at)
	if to := min(q.commit, at); to > e.commit {
		e.commit = to
		signal(e.agreed)
	}
	return answer{term: e.kept.term, yes: true, last: at}
}

// vote is given to one member in a term, that has all that this one has.
func (e *elector) vote(q ballot) answer {
	if e.m.gate(e.ctx, fmt.Sprint("vote", q.from, q.term)) != nil {
		return answer{}
	}
	e.mu.Lock()
	if q.term < e.kept.term || e.leader >= 0 && e.w.now()-e.heard < patience {
		defer e.mu.Unlock()
		return answer{term: e.kept.term}
	}
	e.later(q.term)
	last := len(e.kept.log)
	has := q.lastTerm > e.termAt(last) || q.lastTerm == e.termAt(last) && q.last >= last || e.w.plant.anyVote
	yes := has && (e.kept.voted < 0 || e.kept.voted == q.from)
	if yes {
		e.kept.voted, e.heard = q.from, e.w.now()
	}
	a := answer{term: e.kept.term, yes: yes}
	e.mu.Unlock()
	if e.sync() != nil {
		return answer{}
	}
	return a
}

// applies applies what was agreed on, in order, until the process ends.
func (e *elector) applies() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.agreed:
		}
		for e.m.gate(e.ctx, "apply") == nil {
			e.mu.Lock()
			if e.applied >= e.commit {
				e.mu.Unlock()
				break
			}
			e.applied++
			i, l := e.applied, e.kept.log[e.applied-1]
			e.mu.Unlock()
			var said any
			if l.Type == raft.LogCommand {
				said = e.fsm.Apply(l)
			}
			e.mu.Lock()
			if c := e.waiting[i]; c != nil {
				c <- said
				delete(e.waiting, i)
			}
			e.mu.Unlock()
		}
	}
}
