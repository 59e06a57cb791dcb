// Package recur says at which times a reservation comes that comes again. It is pure:
// the rules of the zone are given to it.
package recur

import (
	"fmt"
	"slices"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/spec"
)

// First is a reservation with its first times: from its start on, each as long as from
// its start to its end.
func First(w state.Window, zone *time.Location) (state.Window, *state.Refusal) {
	e := *w.Every
	from := wall(w.Start, zone)
	e.WallS = int64(wall(w.End, zone).Sub(from) / time.Second)
	if e.WallS < 60 {
		return w, &state.Refusal{Code: state.Conflict, Path: "end", Message: fmt.Sprintf("reservation %q lasts less than a minute", w.Name)}
	}
	last := job.Instant(0)
	for i, at := 0, job.Instant(from.UnixMilli()); i < spec.MaxSpans; i++ {
		next, err := job.NextCron(e.Cron, at)
		if err != nil {
			return w, &state.Refusal{Code: state.Conflict, Path: "every.schedule", Message: err.Error()}
		}
		if gap := int64(next-last) / 1000; last > 0 && gap < e.WallS {
			return w, &state.Refusal{Code: state.Conflict, Path: "every.schedule",
				Message: fmt.Sprintf("reservation %q lasts %s, and begins anew after %s", w.Name, job.Duration(e.WallS), job.Duration(gap))}
		}
		last, at = next, next
	}
	w.Every = &e
	w, again := with(w, times(e, zone, w.Start-1))
	if !again {
		return w, &state.Refusal{Code: state.Conflict, Path: "every.until", Message: fmt.Sprintf("reservation %q would never begin: its first time is after its last day", w.Name)}
	}
	return w, nil
}

// Later is a reservation with the times that come after its present one, and are not
// over; false if there is none.
func Later(w state.Window, zone *time.Location, now sched.Time) (state.Window, bool) {
	if w.Every == nil {
		return w, false
	}
	// What has passed while nobody looked is not gone through one by one.
	for after := w.Start; ; {
		list := times(*w.Every, zone, after)
		if len(list) == 0 {
			return w, false
		}
		after = max(list[len(list)-1].Start, now-sched.Time(w.Every.WallS)*sched.Second-sched.Day)
		if list = slices.DeleteFunc(list, func(s sched.Span) bool { return s.End <= now }); len(list) > 0 {
			return with(w, list)
		}
	}
}

func with(w state.Window, times []sched.Span) (state.Window, bool) {
	if len(times) == 0 {
		return w, false
	}
	w.Start, w.End, w.More = times[0].Start, times[0].End, times[1:]
	return w, true
}

// times is the first of them that begin after a moment. A time that the clock leaves
// out is the one an hour on; of one that it shows twice it is the second.
func times(e state.Every, zone *time.Location, after sched.Time) (list []sched.Span) {
	at := Shown(after, zone)
	for range 2 * spec.MaxSpans {
		next, err := job.NextCron(e.Cron, at)
		if err != nil || len(list) == spec.MaxSpans {
			return list // it was looked at when the reservation was made
		}
		at = next
		s := sched.Span{Start: Moment(next, 0, zone), End: Moment(next, e.WallS, zone)}
		if s.End <= s.Start {
			s.End = s.Start + sched.Time(e.WallS)*sched.Second
		}
		if e.Until > 0 && s.Start >= e.Until || s.End > spec.MaxTime {
			return list
		}
		if s.Start <= after {
			continue
		}
		if n := len(list); n > 0 && s.Start < list[n-1].End {
			if s.Start <= list[n-1].Start {
				continue
			}
			list[n-1].End = s.Start
		}
		list = append(list, s)
	}
	return list
}

// Shown is what a zone's clock shows at a moment, as if that were UTC.
func Shown(at sched.Time, zone *time.Location) job.Instant {
	return job.Instant(wall(at, zone).UnixMilli())
}

func wall(at sched.Time, zone *time.Location) time.Time {
	t := time.UnixMilli(int64(at)).In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// Moment is when a zone's clock shows so many seconds more.
func Moment(shown job.Instant, seconds int64, zone *time.Location) sched.Time {
	t := time.UnixMilli(int64(shown)).UTC()
	return sched.Time(time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second()+int(seconds), 0, zone).UnixMilli())
}
