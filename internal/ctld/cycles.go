package ctld

import (
	"sync/atomic"
	"time"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/sched"
)

// cycles are what Slurm's sdiag tells of its scheduler, since the start. Times
// are in microseconds, as there.
type cycles struct {
	count, sum, last, longest atomic.Int64
	depth, backfilled, starts atomic.Int64
	submitted                 atomic.Int64
	endings                   [endings]atomic.Int64
}

// add takes in a round. Only the loop calls it.
func (c *cycles) add(took time.Duration, p *sched.Plan) {
	us := took.Microseconds()
	c.count.Add(1)
	c.sum.Add(us)
	c.last.Store(us)
	c.longest.Store(max(us, c.longest.Load()))
	c.depth.Add(int64(p.Stats.Evaluated))
	c.starts.Add(int64(len(p.Starts)))
	for _, s := range p.Starts {
		if s.Backfilled {
			c.backfilled.Add(1)
		}
	}
}

func (c *cycles) ended(list ...ending) int64 {
	n := int64(0)
	for _, e := range list {
		n += c.endings[e].Load()
	}
	return n
}

// ending is how a job that is over ended.
type ending int

const (
	endedWell ending = iota
	endedCancelled
	endedTimeout
	endedDeadline
	endedPreempted
	endedNodeFail
	endedOOM
	endedFailed
	endings
)

func endingOf(j *control.Job) ending {
	switch {
	case j.State == job.Finished:
		return endedWell
	case j.State == job.Cancelled:
		return endedCancelled
	case j.State == job.Halted:
		return endedPreempted
	case j.Reason == job.MaxRuntime:
		return endedTimeout
	case j.Reason == job.NotAfter || j.Reason == job.MaxQueued:
		return endedDeadline
	case j.Reason == job.NodeFail:
		return endedNodeFail
	case j.Reason == job.OOM:
		return endedOOM
	}
	return endedFailed
}
