package human

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pastForms are how a time that was may be written.
var pastForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01"}

// agoUnits are the units of how long ago something was.
var agoUnits = map[string]time.Duration{
	"d day days": 24 * time.Hour, "w week weeks": 7 * 24 * time.Hour, "h hour hours": time.Hour, "m minute minutes": time.Minute, "s second seconds": time.Second,
}

// ParsePast reads a time, a date, now, today, or how long ago: 12h, 7d, as
// Slurm has it now-7days, and in seconds now-60.
func ParsePast(text string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.In(zone)
	switch text {
	case "now":
		return now, nil
	case "today", "midnight":
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, zone), nil
	}
	for _, form := range pastForms {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, nil
		}
	}
	ago, fromNow := strings.CutPrefix(text, "now-")
	digits := strings.TrimRight(ago, "abcdefghijklmnopqrstuvwxyz ")
	word := strings.TrimSpace(ago[len(digits):])
	if word == "" && fromNow {
		word = "s"
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	for names, unit := range agoUnits {
		if err == nil && slices.Contains(strings.Fields(names), word) && n <= uint64(math.MaxInt64/unit) {
			return now.Add(-time.Duration(n) * unit), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want 2026-03-01, 2026-03-01T18:00, 2026-03, today, now, or how long ago as 12h or 7d", text)
}
