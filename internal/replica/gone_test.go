package replica

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// words is a log that can be read while it is written.
type words struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *words) has(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.text.Bytes(), []byte(what))
}

// patientTrio is three members, of which a leads, and the others call it gone only after a while.
func patientTrio(t *testing.T) (all []*member, log *words) {
	t.Helper()
	log = &words{}
	for _, name := range []string{"a", "b", "c"} {
		m := newMember(t, name)
		m.log = slog.New(slog.NewTextHandler(log, nil))
		if name != "a" {
			m.patient = 20 * time.Second
			m.joins()
		}
		m.start()
		t.Cleanup(m.stop)
		if all = append(all, m); name == "a" {
			leader(t, m)
		} else if err := all[0].r.Add(Member{Name: name, Address: m.address, Voter: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range all {
		// Who stands is the first in the list, so all have it.
		until(t, m.name+" knows who leads, and the others", func() bool {
			known, err := m.r.Members()
			return err == nil && m.r.Leader() == "a" && len(known) == len(all)
		})
	}
	return all, log
}

const stands = "the controller that led has ended"

// TestLeaderGone: nobody waits out the patience for a leader whose process has ended.
func TestLeaderGone(t *testing.T) {
	t.Parallel()
	all, log := patientTrio(t)
	all[0].stop()
	_, lead := leader(t, all[1:]...)
	if err := lead.Store.Commit(nil); err != nil {
		t.Error(err)
	}
	if !log.has(stands) {
		t.Error("the members waited until the leader had been silent for as long as one may be")
	}
}

// TestLeaderUnheard: who leads stays, as long as it is not known to have ended, or is heard of.
func TestLeaderUnheard(t *testing.T) {
	t.Parallel()
	all, log := patientTrio(t)
	b := all[1].r
	if b.refuses(t.Context(), "a", all[0].address, time.Now()) {
		t.Error("one that answers was taken for one that has ended")
	}
	refused := b.cfg.Dial
	b.cfg.Dial = func(string, time.Duration) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	b.succeed(t.Context(), time.Now()) // the leader calls meanwhile
	b.cfg.Dial = func(string, time.Duration) (net.Conn, error) { return nil, errors.New("no route") }
	b.succeed(t.Context(), time.Now())
	b.cfg.Dial = refused
	if log.has(stands) || all[0].r.Leader() != "a" {
		t.Errorf("%s leads after a live one was called gone", all[0].r.Leader())
	}
}

// TestFirstStands: a member leaves it to those that run and come before it to stand, unless one of these stands that lacks an entry.
func TestFirstStands(t *testing.T) {
	t.Parallel()
	all, _ := patientTrio(t)
	b, c := all[1].r, all[2].r
	if leader, before, ok := b.heir(); leader.Name != "a" || len(before) > 0 || !ok {
		t.Errorf("b comes after %v, when %s led: %t", before, leader.Name, ok)
	}
	leader, before, ok := c.heir()
	if leader.Name != "a" || len(before) != 1 || before[0].Name != "b" || !ok {
		t.Fatalf("c comes after %v, when %s led: %t", before, leader.Name, ok)
	}
	if _, _, ok := all[0].r.heir(); ok {
		t.Error("who leads would stand")
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	for name, tc := range map[string]struct {
		last uint64
		vain bool
	}{"has all": {c.raft.LastIndex(), false}, "has more": {c.raft.LastIndex() + 1, false}, "lacks one": {c.raft.LastIndex() - 1, true}} {
		c.asked(raft.RequestVoteRequest{LastLogIndex: tc.last})
		ctx := t.Context()
		if !tc.vain {
			ctx = over
		}
		if got := c.standsInVain(ctx); got != tc.vain {
			t.Errorf("%s: it stands in vain: %t", name, got)
		}
	}
	if !c.anyRuns(before) {
		t.Error("b cannot be reached")
	}
	all[1].stop()
	if c.anyRuns(before) {
		t.Error("b can be reached after its end")
	}
}
