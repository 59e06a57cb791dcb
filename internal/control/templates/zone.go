package templates

import (
	"fmt"
	"time"

	"gbatch/internal/control/recur"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// New is the template's part of a new job, by its zone's clock; nil if it is none.
func New(g *job.Gbatch, zone *time.Location, now sched.Time) (*state.Cron, *state.Refusal) {
	if g == nil || len(g.Cron) == 0 {
		return nil, nil
	}
	if g.CronZone != "" && zone == nil {
		return nil, &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.cronZone", Message: fmt.Sprintf("there is no time zone %q", g.CronZone), Hint: "name it as Europe/Brussels"}
	}
	next, err := AfterIn(g.Cron, zone, now)
	if err != nil {
		return nil, &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.cron", Message: err.Error()}
	}
	return &state.Cron{Lines: g.Cron, Next: next, Tasks: g.Tasks, Zone: g.CronZone, Replace: g.Replace, Overlap: g.CronOverlap}, nil
}

// AfterIn is the first time after a moment that a time table names by a zone's clock;
// nil is UTC's. A time that the clock leaves out is the one an hour on.
func AfterIn(lines []string, zone *time.Location, moment sched.Time) (sched.Time, error) {
	if zone == nil {
		return After(lines, moment)
	}
	shown := sched.Time(recur.Shown(moment, zone))
	for {
		next, err := After(lines, shown)
		if err != nil {
			return 0, err
		}
		if at := recur.Moment(job.Instant(next), 0, zone); at > moment {
			return at, nil
		}
		shown = next // the clock was set back, and shows it a second time
	}
}
