package units

import (
	"testing"
	"time"
)

// now is a Sunday in a zone that is not UTC.
var (
	zone = time.FixedZone("there", 3600)
	now  = time.Date(2026, 3, 1, 9, 0, 0, 0, zone)
)

func day(m, d, h, min int) time.Time { return time.Date(2026, time.Month(m), d, h, min, 0, 0, zone) }

func TestParsePast(t *testing.T) {
	for text, want := range map[string]time.Time{
		"now": now, "today": day(3, 1, 0, 0), "midnight": day(3, 1, 0, 0), "yesterday": day(2, 28, 0, 0),
		"2026-02": day(2, 1, 0, 0), "2026-02-03": day(2, 3, 0, 0), "2026-02-03T04:05": day(2, 3, 4, 5), "2026-02-03 04:05": day(2, 3, 4, 5),
		"2026-02-03T04:05:00Z": day(2, 3, 5, 5), "08:30": day(3, 1, 8, 30), "18:00": day(3, 1, 18, 0),
		"12h": now.Add(-12 * time.Hour), "2 hours": now.Add(-2 * time.Hour), "2 hours ago": now.Add(-2 * time.Hour), "1h30m": now.Add(-90 * time.Minute), "1d": now.AddDate(0, 0, -1),
		"now-60": now.Add(-time.Minute), "now-7days": now.AddDate(0, 0, -7), "2 weeks": now.AddDate(0, 0, -14), "366d": now.AddDate(0, 0, -366),
	} {
		if got, err := ParsePast(text, now, zone); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "7", "d", "7 moons", "2026-13-01", "-7d", "+7d", "now+7d", "99999999999d", "1-12"} {
		if got, err := ParsePast(bad, now, zone); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}

func TestParseComing(t *testing.T) {
	for text, want := range map[string]time.Time{
		"now": now, "tomorrow": day(3, 2, 0, 0), "2026-03-05": day(3, 5, 0, 0), "2026-03-05T18:00": day(3, 5, 18, 0), "2026-03-05T18:00:00Z": day(3, 5, 19, 0),
		"18:00": day(3, 1, 18, 0), "08:30": day(3, 2, 8, 30),
		"+2h30m": now.Add(150 * time.Minute), "+1d": now.AddDate(0, 0, 1), "+2 weeks": now.AddDate(0, 0, 14), "now+60": now.Add(time.Minute), "now+7days": now.AddDate(0, 0, 7),
	} {
		if got, err := ParseComing(text, now, zone); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "7", "2h", "+7", "+-2h", "now++2h", "now-2h", "+1-12", "2026-13-01"} {
		if got, err := ParseComing(bad, now, zone); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}
