package meter

import (
	"sync/atomic"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Cycles are what Slurm's sdiag tells of its scheduler, since the start. Times
// are in microseconds, as there.
type Cycles struct {
	Count, Sum, Last, Longest atomic.Int64
	Depth, Backfilled, Starts atomic.Int64
	Submitted                 atomic.Int64
	endings                   [Endings]atomic.Int64
}

// add takes in a round. Only the loop calls it.
func (c *Cycles) add(took time.Duration, p *sched.Plan) {
	us := took.Microseconds()
	c.Count.Add(1)
	c.Sum.Add(us)
	c.Last.Store(us)
	c.Longest.Store(max(us, c.Longest.Load()))
	c.Depth.Add(int64(p.Stats.Evaluated))
	c.Starts.Add(int64(len(p.Starts)))
	for _, s := range p.Starts {
		if s.Backfilled {
			c.Backfilled.Add(1)
		}
	}
}

// Ended is how many jobs ended in these ways.
func (c *Cycles) Ended(list ...Ending) int64 {
	n := int64(0)
	for _, e := range list {
		n += c.endings[e].Load()
	}
	return n
}

// Ending is how a job that is over ended.
type Ending int

const (
	EndedWell Ending = iota
	EndedCancelled
	EndedTimeout
	EndedDeadline
	EndedPreempted
	EndedNodeFail
	EndedOOM
	EndedFailed
	Endings
)

// EndingOf is how a job that is over ended.
func EndingOf(j *state.Job) Ending {
	switch {
	case j.State == job.Finished:
		return EndedWell
	case j.State == job.Cancelled:
		return EndedCancelled
	case j.State == job.Halted:
		return EndedPreempted
	case j.Reason == job.MaxRuntime:
		return EndedTimeout
	case j.Reason == job.NotAfter || j.Reason == job.MaxQueued:
		return EndedDeadline
	case j.Reason == job.NodeFail:
		return EndedNodeFail
	case j.Reason == job.OOM:
		return EndedOOM
	}
	return EndedFailed
}
