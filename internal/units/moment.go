package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// momentForms are how a date may be written, and a time of one. What has no zone is
// of the reader's.
var momentForms = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly, "2006-01",
}

// ParsePast reads a time that was, in the zone of whoever wrote it: a date, one with
// a time, a time of today, now, today, yesterday, or how long ago, as 12h, "2 hours
// ago" or now-7days. A number alone after now- is of seconds, as Slurm has it.
func ParsePast(text string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.In(zone)
	if t, _, ok := date(text, now); ok {
		return t, nil
	}
	ago, fromNow := strings.CutPrefix(text, "now-")
	if d, ok := length(strings.TrimSuffix(ago, " ago"), fromNow); ok {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q: want 2026-03-01, 2026-03-01T18:00, 2026-03, 18:00, today, yesterday, now, or how long ago as 12h, 7d or \"2 hours\"", text)
}

// ParseComing reads a time that is to come, in the zone of whoever wrote it: a date,
// one with a time, the next time that it is 18:00, now, tomorrow, or how long from
// now, as +2h30m or now+7days.
func ParseComing(text string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.In(zone)
	if t, clock, ok := date(text, now); ok {
		if clock && t.Before(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	after, fromNow := strings.CutPrefix(text, "now+")
	after, plus := strings.CutPrefix(after, "+")
	if d, ok := length(after, fromNow); ok && fromNow != plus {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%q: want 2026-03-01, 2026-03-01T18:00, 18:00, tomorrow, now, or how long from now as +2h30m or +7d", text)
}

// date reads what says itself when it is; clock: it is a time of today.
func date(text string, now time.Time) (t time.Time, clock, ok bool) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, false, true
	case "today", "midnight":
		return midnight, false, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), false, true
	case "tomorrow":
		return midnight.AddDate(0, 0, 1), false, true
	}
	for _, form := range momentForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, false, true
		}
	}
	for _, form := range []string{"15:04", time.TimeOnly} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), true, true
		}
	}
	return time.Time{}, false, false
}

// length reads a length with units; with bare also a number of seconds. Forms with
// colons are times of a day here.
func length(text string, bare bool) (time.Duration, bool) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, bare
	}
	d, err := ParseDuration(text)
	return d, err == nil && !strings.ContainsAny(text, ":-+")
}
