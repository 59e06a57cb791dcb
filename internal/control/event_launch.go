package control

import (
	"fmt"

	"gbatch/internal/control/launches"
	"gbatch/internal/control/quota"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// Launch records a step that the first rank of a job is about to start, and gives
// it its number; or how one ended. It may be said again.
type Launch struct {
	Node  string
	Rank  job.RankID
	UUID  string        // of its job
	Begin *state.Launch // without what is decided here; nil: End
	End   launches.End
}

func (e Launch) apply(s *step) (uint32, *state.Refusal) {
	j := s.jobs.get(e.Rank.Job)
	if j != nil && !node.SameJob(j.Identity(), e.UUID) {
		j = nil
	}
	if refusal := launches.Running(j, e.Node, e.Rank); refusal != nil {
		return 0, refusal
	}
	set := launches.Of(j)
	if e.Begin == nil {
		if canceled := set.End(s.now, e.End); canceled {
			s.nodes.wakeAll(j) // nothing is asked of it any more
		}
		s.jobs.setLaunches(j, set)
		return e.End.Number, nil
	}
	n, more, refusal := set.Begin(s.now, *e.Begin)
	if refusal == nil {
		refusal = s.jobs.tooMuch(j.Owner.User, quota.Amount{Records: more})
	}
	if refusal != nil {
		return 0, refusal
	}
	s.jobs.stored(j.Owner.User, quota.Amount{Records: more})
	s.jobs.setLaunches(j, set)
	return n, nil
}

func (Launch) audit(uint32) Audit { return Audit{Nothing: true} }

// CancelLaunch asks for the end of one step of a job, which goes on. The caller has
// checked that By may do it.
type CancelLaunch struct {
	Job    job.Number
	Number uint32
	By     string
}

func (e CancelLaunch) apply(s *step) (out Result, refusal *state.Refusal) {
	j := s.jobs.get(e.Job)
	if j == nil || j.Try() == 0 {
		return out, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no step %d.%d", e.Job, e.Number)}
	}
	set, asked := launches.Of(j), false
	out.Before, out.After = j.Status(), j.Status()
	if out.Message, asked, out.Refusal = set.Cancel(e.Number, e.By); asked {
		s.nodes.wakeAll(s.jobs.setLaunches(j, set))
	}
	return out, nil
}

func (e CancelLaunch) audit(o Result) Audit {
	return Audit{Object: fmt.Sprintf("step %d.%d", e.Job, e.Number), Change: o.Message}
}

func (t *jobs) setLaunches(j *state.Job, set *launches.Set) *state.Job {
	if len(set.Records) == 0 {
		return j
	}
	t.out.Store(set.Records...)
	at := *j.Attempt
	at.Launches = &set.Launches
	return t.change(j, "", func(j *state.Job) { j.Attempt = &at })
}
