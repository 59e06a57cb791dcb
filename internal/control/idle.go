package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
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

// loads takes in how busy a node's GPUs are, and ends jobs that have asked to be
// ended when theirs do nothing.
func (e NodeSync) loads(c *step, name string, list []GPULoad) {
	n := c.node(name)
	if n == nil || len(list) == 0 {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := c.job(num)
		if j == nil || j.State != job.Running || j.Ending != nil || j.Request.IdleWindow == 0 || j.Attempt.Paused != "" {
			delete(c.idle, num)
			continue
		}
		c.watchIdle(j, name, list)
	}
}

func (c *step) watchIdle(j *state.Job, name string, list []GPULoad) {
	w := c.idle[j.Number]
	if w == nil || w.attempt != j.Attempt.Attempt {
		w = &idleWatch{attempt: j.Attempt.Attempt, gpus: map[string]*idleGPU{}}
		c.idle[j.Number] = w
	}
	at := int64(c.now / (j.Request.IdleWindow / idleParts))
	busiest, all := int64(0), true
	for _, r := range j.Attempt.Ranks {
		for _, g := range r.Alloc.GPUs {
			seen := w.gpus[g.UUID]
			if seen == nil {
				seen = &idleGPU{}
				w.gpus[g.UUID] = seen
			}
			for _, l := range list {
				if l.UUID == g.UUID && r.Alloc.Node == name {
					seen.add(at, l.Permille)
				}
			}
			mean, ok := seen.mean(at)
			busiest, all = max(busiest, mean), all && ok
		}
	}
	if !all || len(w.gpus) == 0 || busiest >= int64(j.Request.IdleMin)*10 {
		return
	}
	delete(c.idle, j.Number)
	how := c.stopWith(j)
	how.Reason, how.Then = job.Utilization, job.Failed
	how.Text = fmt.Sprintf("its GPUs were idle: over %s the busiest was used %d.%d %% of the time, and the job wants %d %% or its end",
		job.Duration(j.Request.IdleWindow/1000), busiest/10, busiest%10, j.Request.IdleMin)
	c.end(j, how)
}
