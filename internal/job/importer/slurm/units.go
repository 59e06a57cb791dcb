package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/units"
)

// wholeNumber reads digits alone.
func wholeNumber(s string) (int64, error) {
	if s == "" || len(s) > 12 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("want a whole number")
	}
	return strconv.ParseInt(s, 10, 64)
}

// GPUs is a number of GPUs, of one model if that is named.
type GPUs struct {
	Model string // empty: any
	Count int
	given bool
}

// ParseGPUs reads N, MODEL or MODEL:N.
func ParseGPUs(s string) (GPUs, error) {
	g := GPUs{Count: 1, given: true}
	model, count, both := strings.Cut(s, ":")
	if n, err := wholeNumber(model); err == nil && !both {
		g.Count = int(n)
		return g, nil
	}
	g.Model = model
	if both {
		n, err := wholeNumber(count)
		if err != nil {
			return g, errors.New("want a number, or MODEL:NUMBER")
		}
		g.Count = int(n)
	}
	if len(g.Model) < 2 {
		return g, errors.New("names a model of less than 2 letters")
	}
	return g, nil
}

// begin reads the time a job may begin at: a date and time, a time of the
// day, or now plus something, as Slurm has them, and as our other flags do.
func begin(s string, o Options) (job.Instant, error) {
	zone := cmp.Or(o.Zone, time.UTC)
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "01/02/06", "01/02/06-15:04:05"} {
		if t, err := time.ParseInLocation(form, s, zone); err == nil {
			return job.Instant(t.UnixMilli()), nil
		}
	}
	now := time.UnixMilli(int64(o.Now)).In(zone)
	wrong := errors.New("want YYYY-MM-DDTHH:MM:SS, HH:MM, now+1hour, +2h30m, midnight, noon, teatime or tomorrow")
	var at time.Time
	switch {
	case o.Now == 0:
		return 0, errors.New("is a time on the clock, and the time now is not known: want YYYY-MM-DDTHH:MM:SS")
	case s == "now":
		return 0, nil
	case strings.HasPrefix(s, "now+"):
		d, err := span(s[len("now+"):])
		if err == nil {
			return job.Instant(now.Add(d).UnixMilli()), nil
		}
		wrong = err
	case s == "midnight" || s == "today":
		s = "00:00"
	case s == "noon":
		s = "12:00"
	case s == "teatime":
		s = "16:00"
	case s == "tomorrow":
		y, m, d := now.AddDate(0, 0, 1).Date()
		return job.Instant(time.Date(y, m, d, 0, 0, 0, 0, zone).UnixMilli()), nil
	}
	for _, form := range []string{"15:04:05", "15:04", "3:04PM", "3PM"} {
		t, err := time.Parse(form, strings.ToUpper(s))
		if err != nil {
			continue
		}
		y, m, d := now.Date()
		if at = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, zone); at.Before(now) {
			at = at.AddDate(0, 0, 1)
		}
		return job.Instant(at.UnixMilli()), nil
	}
	at, err := units.ParseComing(s, now, zone)
	switch {
	case err != nil:
		return 0, wrong
	case at.Sub(now) > time.Duration(job.MaxDuration)*time.Second:
		return 0, errors.New("is more than 3650 days away")
	}
	return job.Instant(at.UnixMilli()), nil
}

// span reads a number with a unit, seconds if there is none.
func span(s string) (time.Duration, error) {
	digits := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
	unit := ""
	if digits >= 0 {
		s, unit = s[:digits], strings.TrimSuffix(s[digits:], "s")
	}
	n, err := wholeNumber(s)
	if err != nil {
		return 0, errors.New("want now+NUMBER and seconds, minutes, hours, days or weeks")
	}
	lengths := map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}
	if length := lengths[unit]; length > 0 {
		if n > int64(job.MaxDuration)*int64(time.Second)/int64(length) {
			return 0, errors.New("is more than 3650 days away")
		}
		return time.Duration(n) * length, nil
	}
	return 0, fmt.Errorf("has a unit %s: want seconds, minutes, hours, days or weeks", document.Quote(unit))
}
