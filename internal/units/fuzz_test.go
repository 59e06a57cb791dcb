package units

import (
	"strings"
	"testing"
	"time"

	"gbatch/internal/job/times"
)

// FuzzParseDuration: what is taken is within bounds.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"5 minutes", "90s", "1h30m", "0", "-1s", "1e9h", "9223372036854775807ns", "2 weeks", "+5s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDuration(s); err == nil && (d < 0 || d > time.Duration(times.MaxDuration)*time.Second) {
			t.Errorf("%q is %v", s, d)
		}
	})
}

// FuzzPast: how long ago is never in the future.
func FuzzPast(f *testing.F) {
	now := time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC)
	for _, s := range []string{"2026-03-01", "now-7days", "12h", "99999w", "today", "-1d", "1d 1h", "2026-13"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParsePast(s, now, time.UTC)
		if err == nil && at.After(now) && s != "tomorrow" && !strings.Contains(s, ":") && (len(s) < 7 || s[4] != '-') && (len(s) == 0 || s[len(s)-1] != 'Z') {
			t.Errorf("%q is %v", s, at)
		}
	})
}
