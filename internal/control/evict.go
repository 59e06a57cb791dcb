package control

import (
	"fmt"

	"gbatch/internal/control/reboot"
	"gbatch/internal/control/retry"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Evicted is a job that has to leave a node, and what becomes of it.
type Evicted struct{ ID, Name, User, What string }

// evict has the jobs of a node leave it of which a rank matches. What may be halted
// for another job is halted, with the same notice; of the others goes on what has not
// begun or asked for it, and the rest ends by an operator.
func (s *step) evict(node, why string, match func(state.Rank) bool) (out []Evicted) {
	for _, num := range s.nodes.get(node).Jobs { // the slice is never changed in place
		j := s.jobs.get(num)
		for _, r := range j.Attempt.Ranks {
			if match(r) {
				out = append(out, Evicted{j.ID(), j.Name, j.Owner.User, s.evictJob(j, why)})
				break
			}
		}
	}
	return out
}

func (s *step) evictJob(j *state.Job, why string) string {
	switch {
	case j.Ending != nil:
		return "is being ended already"
	case j.State == job.Running && j.Request.Restartable && j.Parent == 0:
		s.attempts.halt(j, job.ByAdmin, why)
		return "is being halted; a new job will continue it"
	case j.State != job.Running || j.Request.Restartable:
		s.attempts.halt(j, job.ByAdmin, why)
		return "is being ended and will wait again"
	case retry.Interrupted(j.Request.Retry):
		s.attempts.stop(j, state.Ending{Then: job.Queued, Reason: job.ByAdmin, Text: why})
		return "is being ended and will begin anew, as its gbatch.retry asks"
	}
	s.attempts.stop(j, state.Ending{Then: job.Cancelled, Reason: job.ByAdmin, Text: why})
	return "is being cancelled: it is not restartable"
}

// leave has the jobs leave nodes whose time to end by themselves is over, and looks
// after reboots.
func (e Tick) leave(s *step) {
	for was := range s.nodes.list.All() {
		s.nodes.stepReboot(was.Name)
		n := *s.nodes.get(was.Name)
		if n.EvictAt == 0 || s.now < n.EvictAt {
			continue
		}
		n.EvictAt = 0
		s.nodes.set(n)
		s.evict(n.Name, fmt.Sprintf("%s is drained: %s", n.Name, n.Drained), func(r state.Rank) bool { return r.Alloc.Node == n.Name })
	}
}

// stepReboot has an order to reboot a node go on: it is told when it is empty.
func (t *nodes) stepReboot(name string) {
	v, changed := reboot.Step(t.get(name), t.out.Now, t.cfg.RebootTime)
	if changed {
		t.set(v)
		t.wake(name)
	}
}
