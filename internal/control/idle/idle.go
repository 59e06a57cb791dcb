// Package idle watches how busy the GPUs are of jobs that want to end when theirs do
// nothing. It is pure. The controller owns the one Jobs.
package idle

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Load is how busy a GPU was when its node looked last.
type Load struct {
	UUID     string
	Permille int // of the time in which a kernel ran
}

// parts is how many parts a window is looked at in. All must have been seen
// before anything is concluded, so that a node that says nothing ends no job.
const parts = 6

// watch is how busy the GPUs of one attempt were lately. It is not stored:
// after a restart of the controller the window begins anew.
type watch struct {
	attempt uint32
	gpus    map[string]*gpu
}

type gpu struct{ parts [parts]part }

// part is one part of a window: what was seen in the stretch of time with
// that number.
type part struct {
	at     int64
	sum, n int64
}

func (g *gpu) add(at int64, permille int) {
	p := &g.parts[at%parts]
	if p.at != at {
		*p = part{at: at}
	}
	p.sum += int64(permille)
	p.n++
}

// mean is the load over the window that ends before the stretch at; not ok if
// some of it was not seen.
func (g *gpu) mean(at int64) (permille int64, ok bool) {
	for _, p := range g.parts {
		if p.n == 0 || p.at <= at-parts-1 || p.at > at {
			return 0, false
		}
		permille += p.sum / p.n
	}
	return permille / parts, true
}

// Jobs is those that are watched. All of them run.
type Jobs map[job.Number]*watch

// Check verifies that all of them run.
func (w Jobs) Check(jobs *state.Table) error {
	for n := range w { // any of them: order does not matter
		if j := jobs.Get(n); j == nil || j.State != job.Running {
			return fmt.Errorf("the GPUs of job %d are watched, which does not run", n)
		}
	}
	return nil
}

// Add takes in how busy a node's GPUs are. It gives the load of the busiest of the
// job's GPUs over its window; not ok if some of it was not seen.
func (w Jobs) Add(now sched.Time, j *state.Job, from string, list []Load) (busiest int64, ok bool) {
	of := w[j.Number]
	if of == nil || of.attempt != j.Attempt.Attempt {
		of = &watch{attempt: j.Attempt.Attempt, gpus: map[string]*gpu{}}
		w[j.Number] = of
	}
	at := int64(now / (j.Request.IdleWindow / parts))
	all := true
	for _, r := range j.Attempt.Ranks {
		for _, g := range r.Alloc.GPUs {
			seen := of.gpus[g.UUID]
			if seen == nil {
				seen = &gpu{}
				of.gpus[g.UUID] = seen
			}
			for _, l := range list {
				if l.UUID == g.UUID && r.Alloc.Node == from {
					seen.add(at, l.Permille)
				}
			}
			mean, ok := seen.mean(at)
			busiest, all = max(busiest, mean), all && ok
		}
	}
	return busiest, all && len(of.gpus) > 0
}
