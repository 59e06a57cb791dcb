package human

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// pastForms are how a time that was may be written.
var pastForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01"}

// ParsePast reads a time, a date, now, today, or how long ago: 12h, 7d, as
// Slurm has it now-7days.
func ParsePast(text string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.In(zone)
	switch text {
	case "now":
		return now, nil
	case "today":
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, zone), nil
	}
	for _, form := range pastForms {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, nil
		}
	}
	ago := strings.TrimPrefix(text, "now-")
	for _, unit := range []struct {
		names string
		long  time.Duration
	}{{"d day days", 24 * time.Hour}, {"w week weeks", 7 * 24 * time.Hour}, {"h hour hours", time.Hour}, {"m minute minutes", time.Minute}, {"s second seconds", time.Second}} {
		digits := strings.TrimRight(ago, "abcdefghijklmnopqrstuvwxyz ")
		var n int
		if _, err := fmt.Sscanf(digits, "%d", &n); err == nil && fmt.Sprint(n) == digits && n >= 0 && n < 100_000 &&
			slices.Contains(strings.Fields(unit.names), strings.TrimSpace(ago[len(digits):])) {
			return now.Add(-time.Duration(n) * unit.long), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want 2026-03-01, 2026-03-01T18:00, 2026-03, today, now, or how long ago as 12h or 7d", text)
}
