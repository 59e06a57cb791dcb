package chaos

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"gbatch/internal/replica"
)

// seats says of each machine whether it is a controller of the site, and whether its word counts. A change of them is an entry
// of the log, is in force as soon as it is there, and there is one at a time.
type seats string

const (
	away   = '-'
	joins  = 'j' // its word does not count yet
	counts = 'c'
)

// founded are those that begin a site: all but the last machine.
func founded(machines int) seats {
	return seats(strings.Repeat(string(rune(counts)), machines-1) + string(rune(away)))
}

func (s seats) with(i int, seat byte) seats { return s[:i] + seats(seat) + s[i+1:] }

// of are the seats that are in force after an entry, and which entry says so.
func (k *kept) of(last int) (seats, int) {
	for i := last; i > k.first; i-- {
		if l := k.entry(i); l.Type == raft.LogConfiguration {
			return seats(l.Data), i
		}
	}
	return k.seats, k.first
}

// seat is called with the lock.
func (e *elector) seat(i int) byte {
	if s, _ := e.kept.of(e.kept.last()); s != "" {
		return s[i]
	}
	return away
}

// seatOf is the seat of a machine that is agreed on; 0: a change is under way.
func (e *elector) seatOf(i int) byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, at := e.kept.of(e.kept.last())
	if at > e.commit {
		return 0
	}
	return s[i]
}

// Settle is for the production's controllers.Members.
func (e *elector) Settle() error { return e.Barrier() }

// majority says whether most of those whose word counts have something, of which this one is one if its word does. It is
// called with the lock.
func (e *elector) majority(has func(i int) bool) bool {
	s, _ := e.kept.of(e.kept.last())
	all, yes := 0, 0
	for i := range s {
		if s[i] != counts {
			continue
		}
		all++
		if i == e.m.id || has(i) {
			yes++
		}
	}
	return 2*yes > all
}

var errChanging = errors.New("another change of the members is under way")

// change has a machine take a seat, at a moment of its own: who asks was told of what was agreed on as the loop was, and nobody
// says which of two that propose at one moment is the first.
func (e *elector) change(i int, seat byte) error {
	if err := sleep(e.ctx, between(e.w.draw("seat", e.m.id, i), time.Microsecond, time.Millisecond)); err != nil {
		return err
	}
	_, err := e.propose(func() (*raft.Log, error) {
		s, at := e.kept.of(e.kept.last())
		if at > e.commit || e.kept.termAt(e.commit) != e.kept.term {
			return nil, errChanging
		}
		if s[i] == away {
			e.next[i], e.match[i] = e.kept.last()+1, 0
		}
		return &raft.Log{Type: raft.LogConfiguration, Data: []byte(s.with(i, seat))}, nil
	})
	return err
}

// Members are those that this one knows of, for the production's controllers.Members.
func (e *elector) Members() (out []replica.Member, err error) {
	if err := e.m.gate(e.ctx, "members"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, m := range e.w.members {
		if seat := e.seat(i); seat != away {
			out = append(out, replica.Member{Name: m.name(), Address: m.name(), Voter: seat == counts, Leads: i == e.leader})
		}
	}
	return out, nil
}

// Agreed is the last entry that a majority is known to have.
func (e *elector) Agreed() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return uint64(e.commit)
}

// Add has another member take part.
func (e *elector) Add(m replica.Member) error {
	seat := byte(joins)
	if m.Voter {
		seat = counts
	}
	return e.change(e.w.machine(m.Name).id, seat)
}

// Remove has a member take part no longer.
func (e *elector) Remove(name string) error { return e.change(e.w.machine(name).id, away) }

// Transfer has another member lead, which has all that this one has.
func (e *elector) Transfer(name string) error {
	to := e.w.machine(name).id
	e.mu.Lock()
	ok := e.role == leads && e.seat(to) == counts && e.match[to] == e.kept.last()
	e.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s cannot lead now", name)
	}
	_, err := tell(e, to, "lead", func(o *elector) answer {
		if o.m.gate(o.ctx, "lead") == nil {
			o.stand(true)
		}
		return answer{}
	})
	return err
}

// machine is the one of that name.
func (w *world) machine(name string) *member {
	for _, m := range w.members {
		if m.name() == name {
			return m
		}
	}
	panic("no machine is " + name)
}
