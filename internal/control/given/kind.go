package given

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Kind is what jobs have in common that may have each other's place: they are tasks of one array,
// or have one owner and ask the same.
type Kind struct {
	parent  job.Number
	owner   *state.Owner
	request *state.Request
}

// KindOf is that of a job.
func KindOf(j *state.Job) Kind {
	if j.Parent > 0 {
		return Kind{parent: j.Parent}
	}
	return Kind{owner: j.Owner, request: j.Request}
}

// mostKinds bounds those of which it is known how long they run.
const mostKinds = 1000

// Ran notes for how long a job ran that has ended.
func (s *Set) Ran(j *state.Job, d sched.Time) {
	k := KindOf(j)
	if s.ran == nil || len(s.ran) >= mostKinds && s.ran[k] == 0 {
		s.ran = map[Kind]sched.Time{} // the others are known again with the next end of each
	}
	s.ran[k] = max(d, s.ran[k]*7/8, 1)
}

// short says whether jobs of a kind are known to be over soon.
func (s *Set) short(k Kind) bool { return s.ran[k] > 0 && s.ran[k] <= Time }

// May says whether a job may be behind another one of its kind.
func (s *Set) May(j *state.Job) bool {
	return j.State == job.Queued && j.Tasks == nil && j.Request.Shape.Ranks() == 1 && !j.Request.Interactive && s.short(KindOf(j))
}
