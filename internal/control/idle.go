package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// GPULoad is how busy a GPU was when its node looked last.
type GPULoad struct {
	UUID     string
	Permille int // of the time in which a kernel ran
}

// idleParts is how many parts a window is looked at in. All must have been seen
// before anything is concluded, so that a node that says nothing ends no job.
const idleParts = 6

// idleWatch is how busy the GPUs of one attempt were lately. It is not stored:
// after a restart of the controller the window begins anew.
type idleWatch struct {
	attempt uint32
	gpus    map[string]*idleGPU
}

type idleGPU struct{ parts [idleParts]idlePart }

// idlePart is one part of a window: what was seen in the stretch of time with
// that number.
type idlePart struct {
	at     int64
	sum, n int64
}

func (g *idleGPU) add(at int64, permille int) {
	p := &g.parts[at%idleParts]
	if p.at != at {
		*p = idlePart{at: at}
	}
	p.sum += int64(permille)
	p.n++
}

// mean is the load over the window that ends before the stretch at; not ok if
// some of it was not seen.
func (g *idleGPU) mean(at int64) (permille int64, ok bool) {
	for _, p := range g.parts {
		if p.n == 0 || p.at <= at-idleParts-1 || p.at > at {
			return 0, false
		}
		permille += p.sum / p.n
	}
	return permille / idleParts, true
}

// idle is the jobs that are watched. All of them run.
type idle map[job.Number]*idleWatch

func (w idle) check(jobs *jobs) error {
	for n := range w { // any of them: order does not matter
		if j := jobs.get(n); j == nil || j.State != job.Running {
			return fmt.Errorf("the GPUs of job %d are watched, which does not run", n)
		}
	}
	return nil
}

// add takes in how busy a node's GPUs are. It gives the load of the busiest of the
// job's GPUs over its window; not ok if some of it was not seen.
func (w idle) add(now sched.Time, j *state.Job, from string, list []GPULoad) (busiest int64, ok bool) {
	of := w[j.Number]
	if of == nil || of.attempt != j.Attempt.Attempt {
		of = &idleWatch{attempt: j.Attempt.Attempt, gpus: map[string]*idleGPU{}}
		w[j.Number] = of
	}
	at := int64(now / (j.Request.IdleWindow / idleParts))
	all := true
	for _, r := range j.Attempt.Ranks {
		for _, g := range r.Alloc.GPUs {
			seen := of.gpus[g.UUID]
			if seen == nil {
				seen = &idleGPU{}
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

// loads takes in how busy a node's GPUs are, and ends jobs that have asked to be
// ended when theirs do nothing.
func (e NodeSync) loads(s *step) {
	n := s.nodes.get(e.Name)
	if n == nil || len(e.Loads) == 0 {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := s.jobs.get(num)
		if j == nil || j.State != job.Running || j.Ending != nil || j.Request.IdleWindow == 0 || j.Attempt.Paused != "" {
			delete(s.idle, num)
			continue
		}
		busiest, ok := s.idle.add(s.now, j, e.Name, e.Loads)
		if !ok || busiest >= int64(j.Request.IdleMin)*10 {
			continue
		}
		delete(s.idle, num)
		s.attempts.stop(j, state.Ending{Reason: job.Utilization, Then: job.Failed, Text: fmt.Sprintf(
			"its GPUs were idle: over %s the busiest was used %d.%d %% of the time, and the job wants %d %% or its end",
			job.Duration(j.Request.IdleWindow/1000), busiest/10, busiest%10, j.Request.IdleMin)})
	}
}
