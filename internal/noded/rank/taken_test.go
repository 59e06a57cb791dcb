package rank

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestTakenBack: an order to end that counts before a rank has begun ends one that waits for its
// turn, and no other.
func TestTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		begun, ahead, stops bool
	}{
		"waits, taken back":  {false, true, true},
		"waits, cancelled":   {false, false, true},
		"begun, taken back":  {true, true, false},
		"begun, to be ended": {true, false, true},
	} {
		s := newState(job.RankID{Job: 1}, slog.New(slog.DiscardHandler), func(time.Duration) {})
		r := &Rank{recipe: recipe{state: s}}
		if s.waits = true; tc.begun {
			if err := s.takeTurn(); err != nil {
				t.Fatal(name, err)
			}
		}
		r.Want(api.Order{Stop: &api.Stop{Signal: "KILL", Ahead: tc.ahead}})
		if stops := s.stopNow() != nil; stops != tc.stops {
			t.Errorf("%s: it is ended: %t", name, stops)
		}
		if err := s.takeTurn(); errors.Is(err, errStopped) != tc.stops {
			t.Errorf("%s: its turn came with: %v", name, err)
		}
	}
}
