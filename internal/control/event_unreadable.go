package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// Unreadable says that what a job's ranks are to run cannot be read from the store. No
// node can be told of them, so the job fails, and nothing else does.
type Unreadable struct {
	Job     job.Number
	Attempt uint32
	Text    string // what cannot be read
}

func (e Unreadable) apply(s *step) (none, *state.Refusal) {
	j := s.jobs.get(e.Job)
	if j == nil || !j.State.Active() || j.Attempt.Attempt != e.Attempt {
		return none{}, nil // it has ended meanwhile
	}
	if j.Ending == nil {
		s.attempts.stop(j, state.Ending{Reason: job.Server, Then: job.Failed, Text: e.Text})
		j = s.jobs.get(e.Job)
	}
	told := map[string]bool{}
	for _, r := range j.Attempt.Ranks { // in their order
		if !told[r.Alloc.Node] {
			told[r.Alloc.Node] = true
			s.attempts.lose(r.Alloc.Node, e.Text, func(l *state.Job, r state.Rank) bool { return l.Number == e.Job && r.Phase == node.PhaseAssigned })
		}
	}
	return none{}, nil
}

func (e Unreadable) audit(none) Audit { return Audit{Nothing: true} }
