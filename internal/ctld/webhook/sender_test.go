package webhook

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/control/effects"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// TestFloodOfOne: while a service is away, one user's jobs do not take the places
// of what others' messages need.
func TestFloodOfOne(t *testing.T) {
	s := &Sender{conf: func() *site.Config { return &site.Config{Webhooks: []site.Webhook{{Name: "away"}}} }, now: time.Now, more: make(chan struct{}, 1),
		tooMany: notice.Notice{Log: slog.New(slog.DiscardHandler)}, list: map[key]*waiting{}, users: map[string]int{}}
	next := job.Number(0)
	moves := func(user string, n int) (stored int) {
		var moved []effects.Moved
		for range n {
			next++
			moved = append(moved, effects.Moved{Job: next, User: user, To: job.Queued, Version: 1})
		}
		records := s.Records(moved)
		s.Take(records)
		return len(records)
	}
	for _, tc := range []struct {
		user        string
		moves, want int
	}{{"b", 20_000, maxWaiting / 2}, {"b", 1, 0}, {"a", 100, 100}, {"b", 1, 0}, {"a", 20_000, 2400}} {
		if got := moves(tc.user, tc.moves); got != tc.want {
			t.Errorf("of %d messages of %s %d are kept, want %d", tc.moves, tc.user, got, tc.want)
		}
	}
	for k, w := range s.list {
		s.drop(k, w)
	}
	if len(s.users) != 0 {
		t.Errorf("of nothing, users have %v", s.users)
	}
}

// TestOneUsersAddresses: of jobs that name who is told, few of one user's are under way at
// once, and what somebody fails at is forgotten with the last message to them.
func TestOneUsersAddresses(t *testing.T) {
	s := &Sender{conf: func() *site.Config { return &site.Config{} }, now: time.Now, more: make(chan struct{}, 1),
		list: map[key]*waiting{}, users: map[string]int{}, sending: map[string]int{}, services: map[string]*service{}}
	var moved []effects.Moved
	for n := range job.Number(20) {
		m := effects.Moved{Job: n + 1, User: "ann", To: job.Finished, Version: 1, Told: n > 0}
		if n > 17 {
			m.User = "bob"
		}
		moved = append(moved, m)
	}
	s.Take(s.Records(moved))
	var got []job.Number
	for _, k := range s.due() {
		got = append(got, k.job)
	}
	if diff := cmp.Diff([]job.Number{2, 3, 19, 20}, got); diff != "" { // job 1 names nobody
		t.Errorf("jobs that are told of at once (-want +got):\n%s", diff)
	}
	s.services[ownID("ann", "x")], s.services[ownID("bob", "x")] = &service{}, &service{}
	for k, w := range s.list {
		if w.User == "ann" {
			s.drop(k, w)
		}
	}
	if len(s.services) != 1 {
		t.Errorf("after all messages of one user %d addresses are known to fail, want the other's", len(s.services))
	}
}
