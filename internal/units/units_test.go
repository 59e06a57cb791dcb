package units

import (
	"strings"
	"testing"
	"time"
)

// TestParseDuration: each spelling that either daemon has ever taken is taken
// by both.
func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "24h": 24 * time.Hour, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"5 minutes": 5 * time.Minute, "1.5 h": 90 * time.Minute, "2 weeks": 14 * 24 * time.Hour, "1 day": 24 * time.Hour, "1d": 24 * time.Hour, "366d": 366 * 24 * time.Hour, "1d12h": 36 * time.Hour, "2:00:00": 2 * time.Hour, "3650 days": 3650 * 24 * time.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "want a number and a unit", "5": "want a number and a unit", "-5m": "want a number and a unit",
		"0 days": "must be longer than zero", "87601h": "must not be longer than 3650 days", "3651 days": "must not be longer than 3650 days",
	} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v; want an error that says %q", text, got, err, want)
		}
	}
}
