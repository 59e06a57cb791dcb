package webhook

import (
	"log/slog"
	"testing"
	"time"

	"gbatch/internal/control"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// TestFloodOfOne: while a service is away, one user's jobs do not take the places
// of what others' messages need.
func TestFloodOfOne(t *testing.T) {
	s := &Sender{conf: func() []site.Webhook { return []site.Webhook{{Name: "away"}} }, now: time.Now, more: make(chan struct{}, 1),
		tooMany: notice.Notice{Log: slog.New(slog.DiscardHandler)}, list: map[key]*waiting{}, users: map[string]int{}}
	next := job.Number(0)
	moves := func(user string, n int) (stored int) {
		var moved []control.Moved
		for range n {
			next++
			moved = append(moved, control.Moved{Job: next, User: user, To: job.Queued, Version: 1})
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
