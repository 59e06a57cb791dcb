package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOnClock: when somebody has set a node's wall clock since a rank has ended, its times are moved with it, once;
// what is not known to be by an older clock stays.
func TestOnClock(t *testing.T) {
	const hour = 3_600_000
	for name, tc := range map[string]struct {
		end, want Exit
		now       int64
	}{
		"forward":     {Exit{StartedMS: 10 * hour, EndedMS: 11 * hour, WallMS: 5}, Exit{StartedMS: 13 * hour, EndedMS: 14 * hour, WallMS: 5 + 3*hour}, 5 + 3*hour},
		"back":        {Exit{StartedMS: 10 * hour, EndedMS: 11 * hour, FreeMS: 12 * hour, WallMS: 5 * hour}, Exit{StartedMS: 8 * hour, EndedMS: 9 * hour, FreeMS: 10 * hour, WallMS: 3 * hour}, 3 * hour},
		"never began": {Exit{EndedMS: 11 * hour, WallMS: 5}, Exit{EndedMS: 12 * hour, WallMS: 5 + hour}, 5 + hour},
		"not set":     {Exit{EndedMS: 11 * hour, WallMS: 5}, Exit{EndedMS: 11 * hour, WallMS: 5}, 900},
		"not known":   {Exit{EndedMS: 11 * hour}, Exit{EndedMS: 11 * hour}, hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.end
			got.OnClock(tc.now)
			got.OnClock(tc.now)
			end := tc.end
			said := RankStatus{Phase: PhaseEnded, StartedMS: end.StartedMS, Exit: &end}
			if said.OnClock(tc.now); said.StartedMS != tc.want.StartedMS {
				t.Errorf("of the rank it is said that it began at %d, want %d", said.StartedMS, tc.want.StartedMS)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBeginOnClock: what runs is told to have begun by the clock of now, whatever that was set to since, so that it has run for as
// long as it did.
func TestBeginOnClock(t *testing.T) {
	const hour = 3_600_000
	for name, tc := range map[string]struct{ said, now, want int64 }{
		"forward":   {10 * hour, 5 + 3*hour, 13 * hour},
		"back":      {10 * hour, 5 - 3*hour, 7 * hour},
		"not set":   {10 * hour, 900, 10 * hour},
		"not begun": {0, 5 + 3*hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			is := RankStatus{Phase: PhaseRunning, StartedMS: tc.said, WallMS: 5}
			for range 2 {
				if is.OnClock(tc.now); is.StartedMS != tc.want {
					t.Errorf("it began at %d, want %d", is.StartedMS, tc.want)
				}
			}
		})
	}
}
