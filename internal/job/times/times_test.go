package times

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	good := map[string]string{
		"1 week": "1 week", "2 weeks": "2 weeks", "1 day": "1 day", "14 days": "2 weeks", "1.5 h": "90 minutes",
		"3 HOURS": "3 hours", "3hour": "3 hours", "90m": "90 minutes", "90 min": "90 minutes", "60 mins": "1 hour",
		"5   Minutes": "5 minutes", "1 minute": "1 minute", "61 s": "61 seconds", "1 sec": "1 second", "7 secs": "7 seconds",
		".5 h": "30 minutes", "2. h": "2 hours", "0.1 s": "1 second", "3650 days": "3650 days",
		"1d": "1 day", "2w": "2 weeks", "366d": "366 days", "1h30m": "90 minutes", "1 day 12 hours": "36 hours", "1.5d 6h": "42 hours",
		"2:00:00": "2 hours", "40:00": "40 minutes", "1-12": "36 hours", "1-02:03:04": "93784 seconds",
	}
	for text, want := range good {
		if d, err := ParseDuration(text); err != nil || d.String() != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "1", "h", "1d2", "1h30", "1 month", "1 hour, 2 minutes", "1d-2", "0:00", "1:2:3:4", "PT4H", "-1 h", "1e3 s", "1.2.3 h", " 1 h", "1 h ", "1\th", "0 h", "3651 days", "1_0 h", "infinity s", "٣ h", "1\u00a0h", "99999999999999999999999 weeks"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v", text, d)
		}
	}
}

func TestParseInstant(t *testing.T) {
	good := map[string]string{
		"2026-03-01T09:00:00+01:00":     "2026-03-01T08:00:00Z",
		"2026-03-01T08:00:00.1239Z":     "2026-03-01T08:00:00.123Z",
		"1970-01-01T00:00:01Z":          "1970-01-01T00:00:01Z",
		"2024-02-29T23:59:59.999-23:59": "2024-03-01T23:58:59.999Z",
	}
	for text, want := range good {
		if i, err := ParseInstant(text); err != nil || i.String() != want {
			t.Errorf("ParseInstant(%q) = %v, %v; want %s", text, i, err, want)
		}
	}
	for _, text := range []string{"", "now", "2026-03-01", "2026-03-01T09:00:00", "2026-02-30T09:00:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"} {
		if i, err := ParseInstant(text); err == nil {
			t.Errorf("ParseInstant(%q) = %v", text, i)
		}
	}
}

// Times read back from their own text as they were.
func TestTimesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Range(1, int64(MaxDuration)).Draw(t, "duration"))
		if back, err := ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("duration %d is written %q and read as %d, %v", d, d, back, err)
		}
		i := Instant(rapid.Int64Range(1, 253402300799999).Draw(t, "instant"))
		if back, err := ParseInstant(i.String()); err != nil || back != i {
			t.Fatalf("instant %d is written %q and read as %d, %v", i, i, back, err)
		}
	})
}
