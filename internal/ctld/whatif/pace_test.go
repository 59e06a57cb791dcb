package whatif

import (
	"testing"
	"time"
)

// TestPace: an answer is there in its time, however long what cannot be broken off takes:
// it is begun only where as much as took longest so far fits in.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		read, part, step time.Duration
		parts, steps     int // that are begun
	}{
		"a_small_queue": {read: time.Second, part: 100 * time.Millisecond, step: 10 * time.Millisecond, parts: 2, steps: 1000},
		"a_long_queue":  {read: 9 * time.Second, part: 2 * time.Second, step: time.Second, parts: 2, steps: 5},
		"slow_steps":    {read: time.Second, part: time.Second, step: 6 * time.Second, parts: 2, steps: 2},
		"no_step":       {read: 10 * time.Second, part: 4 * time.Second, step: time.Second, parts: 2},
		"not_all_parts": {read: 10 * time.Second, part: 6 * time.Second, parts: 1},
		"only_reading":  {read: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			p := &pace{ctx: t.Context(), now: func() time.Time { return now }, end: now.Add(inAll)}
			end := p.end
			now = now.Add(tc.read)
			parts, steps := 0, 0
			for ; parts < 2 && p.part() == nil; parts++ {
				now = now.Add(tc.part)
			}
			for parts == 2 && p.more() {
				steps++
				now = now.Add(tc.step)
			}
			if parts != tc.parts || steps != tc.steps {
				t.Errorf("%d parts and %d steps were begun, want %d and %d", parts, steps, tc.parts, tc.steps)
			}
			if parts == 2 && steps > 0 && now.After(end) {
				t.Errorf("it ended %v late", now.Sub(end))
			}
		})
	}
}
