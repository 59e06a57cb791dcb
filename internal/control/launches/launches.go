// Package launches is what is kept of the steps that srun starts in a job: which
// run, and the records of the last ones. It is pure; values that it is given are
// not changed.
package launches

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Bounds of the steps of an attempt: that run at a time, whose records are kept,
// and in all.
const (
	maxRunning = 1024
	maxKept    = 1000
	maxAll     = 1 << 20
)

// Set is the steps of a job's running attempt, with what is to be stored.
type Set struct {
	state.Launches
	Records []state.Record
	job     *state.Job
}

// Of are those of a job, to be changed.
func Of(j *state.Job) *Set {
	s := &Set{job: j}
	if l := j.Last().Launches; l != nil {
		s.Launches = *l
		s.Running = slices.Clone(l.Running)
	}
	return s
}

func (s *Set) store(l state.Launch) {
	s.Records = append(s.Records, state.Record{Kind: state.KindLaunch, Job: s.job.Number, Seq: s.job.Attempt.StepSeq(l.Number), Value: state.Encode(l)})
}

// Begin adds a step, or finds the one that was begun by its key. More is by how
// much the records grow.
func (s *Set) Begin(now sched.Time, l state.Launch) (number uint32, more int64, refusal *state.Refusal) {
	if len(l.Ranks) > len(s.job.Attempt.Ranks) { // the job says so itself, and steps are kept in memory
		return 0, 0, conflict("job %d has %d ranks: a step cannot have %d", s.job.Number, len(s.job.Attempt.Ranks), len(l.Ranks))
	}
	for _, r := range l.Ranks {
		if r < 0 || r >= len(s.job.Attempt.Ranks) {
			return 0, 0, conflict("job %d has no rank %d", s.job.Number, r)
		}
	}
	if i := slices.IndexFunc(s.Running, func(o state.Launch) bool { return o.Key == l.Key }); i >= 0 {
		return s.Running[i].Number, 0, nil
	}
	switch {
	case len(s.Running) >= maxRunning:
		return 0, 0, conflict("job %d has %d steps that run, more than it may", s.job.Number, len(s.Running))
	case s.Next >= maxAll:
		return 0, 0, conflict("step limit reached for this job: it has had %d", maxAll)
	}
	l.Number, l.Attempt, l.Begun = s.Next, s.job.Attempt.Attempt, now
	s.Next++
	s.Running = append(s.Running, l)
	s.store(l)
	if s.Next-s.Kept <= maxKept {
		return l.Number, 1, nil
	}
	s.Records = append(s.Records, state.Record{Kind: state.KindLaunch, Job: s.job.Number, Seq: s.job.Attempt.StepSeq(s.Kept)})
	s.Kept++
	return l.Number, 0, nil
}

func conflict(format string, args ...any) *state.Refusal {
	return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf(format, args...)}
}

func (s *Set) find(number uint32) int {
	return slices.IndexFunc(s.Running, func(l state.Launch) bool { return l.Number == number })
}

// End is how a step ended.
type End struct {
	Number       uint32
	Code, Signal int
	OOM          bool         // the memory limit ended something of it
	Use          *job.StepUse // nil: not known
}

// End ends a step, if it runs. Canceled says that this was asked for.
func (s *Set) End(now sched.Time, e End) (canceled bool) {
	i := s.find(e.Number)
	if i < 0 {
		return false
	}
	l := s.Running[i]
	l.Ended, l.Code, l.Signal, l.OOM, l.Use = now, e.Code, e.Signal, e.OOM, e.Use
	s.Running = slices.Delete(s.Running, i, i+1)
	s.store(l)
	return l.Cancel != ""
}

// EndAll ends those that still run when their attempt is over, for want of memory
// where a container of theirs ended so.
func (s *Set) EndAll(now sched.Time) {
	for len(s.Running) > 0 {
		l := &s.Running[0]
		oom := slices.ContainsFunc(l.Ranks, func(r int) bool {
			x := s.job.Attempt.Ranks[r].Exit
			return x != nil && x.Reason == job.OOM
		})
		s.End(now, End{Number: l.Number, Code: 128 + 9, Signal: 9, OOM: oom})
	}
}

// Cancel asks for the end of a step. The text says what that comes to; Asked that
// it is new.
func (s *Set) Cancel(number uint32, by string) (text string, asked bool, refusal *state.Refusal) {
	i := s.find(number)
	switch {
	case i < 0 && number >= s.Next:
		return "", false, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no step %d", s.job.Number, number)}
	case i < 0:
		return "step has ended already", false, nil
	case s.Running[i].Cancel != "":
		return "step is being cancelled already", false, nil
	}
	s.Running[i].Cancel = by
	s.store(s.Running[i])
	return "step is being cancelled", true, nil
}

// Running is the job of a rank, if that is the first of an attempt that runs on
// the node and so may speak of steps.
func Running(j *state.Job, on string, id job.RankID) *state.Refusal {
	switch {
	case j == nil || !j.State.Active() || j.Attempt == nil || j.Attempt.Attempt != id.Attempt || int(id.Task) != j.Index:
		return conflict("rank %s does not run", id)
	case id.Rank != 0 || j.Attempt.Ranks[0].Alloc.Node != on:
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("node %s does not have the first rank of job %d", on, id.Job)}
	}
	return nil
}

// Inside says why a node may not speak for what is in a container of a job; nil: it may, as that runs there.
func Inside(j *state.Job, on string, id job.RankID) *state.Refusal {
	if j == nil || !j.State.Active() || j.Attempt == nil || j.Attempt.Attempt != id.Attempt || int(id.Task) != j.Index ||
		int(id.Rank) >= len(j.Attempt.Ranks) || j.Attempt.Ranks[id.Rank].Alloc.Node != on || j.Attempt.Ranks[id.Rank].Phase == node.PhaseEnded {
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("rank %s does not run on node %s", id, on)}
	}
	return nil
}
