package sim

import (
	"encoding/json"
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// nearMidnight is where random histories begin, so that a day ends in them.
const nearMidnight = base/accounting.DayMS*accounting.DayMS + accounting.DayMS - 20*sched.Minute

// resize asks for other CPU and memory for a job that may run.
func (x *chaos) resize() {
	n := job.Number(1 + x.rng.IntN(max(x.tally.Submitted, 1)))
	apply(x, control.Resize{Number: n, MilliCPU: int64(1+x.rng.IntN(16)) * 1000, MemMiB: int64(1+x.rng.IntN(64)) << 10, By: "ann"})
}

// resizing is what a rank's node was asked to give it.
func (x *chaos) resizing(id job.RankID) *state.Resizing {
	j := x.c.View(x.now).Job(id.Job)
	if j == nil || !j.State.Active() || j.Attempt.Attempt != id.Attempt {
		return nil
	}
	return j.Attempt.Ranks[id.Rank].Asked()
}

// checkUsage verifies that what the days of all accounts have is what all jobs
// had, and what a job had what its attempts had, by what is stored and what the
// controller knows of today.
func (x *chaos) checkUsage() error {
	held, days := map[string]accounting.Amount{}, map[string]accounting.Amount{}
	starts, counted, ended, over := int64(0), int64(0), int64(0), int64(0)
	day := func(d accounting.Day) {
		for _, s := range d.Slices {
			days[d.Project+"/"+d.User] = days[d.Project+"/"+d.User].Plus(s.Used)
			counted += s.Starts
			for _, n := range s.Ended { // a sum: order does not matter
				ended += n
			}
		}
		x.tally.Days++
	}
	jobs, v := map[job.Number]accounting.Amount{}, x.c.View(x.now)
	for j := range v.All() {
		jobs[j.Number] = j.Used
		starts += int64(j.Tries)
		if j.State.Final() && j.Tasks == nil && j.Cron == nil {
			over++
		}
		held[j.Owner.Project+"/"+j.Owner.User] = held[j.Owner.Project+"/"+j.Owner.User].Plus(v.Held(j, x.now))
	}
	ofJob := map[job.Number]accounting.Amount{}
	for _, r := range x.stored { // sums: order does not matter
		switch r.Kind {
		case state.KindAttempt:
			var a state.Attempt
			if err := json.Unmarshal(r.Value, &a); err != nil {
				return err
			}
			ofJob[r.Job] = ofJob[r.Job].Plus(a.Used)
		case state.KindDay:
			var d accounting.Day
			if err := json.Unmarshal(r.Value, &d); err != nil {
				return err
			}
			day(d)
		}
	}
	for _, d := range x.c.Days(x.now) {
		day(d)
	}
	for who, sum := range held { // any that differs will do
		if days[who] != sum {
			return fmt.Errorf("the days of %s have %+v, its jobs %+v", who, days[who], sum)
		}
	}
	if counted != starts || ended != over {
		return fmt.Errorf("%d starts and %d ends are counted, there were %d and %d", counted, ended, starts, over)
	}
	for n, sum := range ofJob { // any that differs will do
		if jobs[n] != sum {
			return fmt.Errorf("job %d has %+v, its attempts %+v", n, jobs[n], sum)
		}
	}
	return nil
}
