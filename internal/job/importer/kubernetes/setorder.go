package kubernetes

import (
	"fmt"

	"gbatch/internal/job"
)

// size is how many pods an entry has.
func (r *replicated) size() int { return r.replicas * r.completions }

// order finds whose one pod begins before or after all others.
func (s *jobSet) order(d *decoder) {
	for _, r := range s.jobs {
		if r.after != nil && s.inOrder == nil {
			s.inOrder = r.after
		}
	}
	if s.inOrder == nil {
		return
	}
	last := len(s.jobs) - 1
	switch {
	case last == 0:
	case last == 1 && s.jobs[1].size() == 1 && (s.jobs[0].size() > 1 || s.succeedsBy(s.jobs[1])):
		s.startOrder = job.WorkersFirst
	case last == 1 && s.jobs[0].size() == 1:
		s.startOrder = job.MasterFirst
	default:
		d.Problem(s.inOrder, "has jobs begin one after the other, and here one pod can begin before or after all others",
			"remove it, and have a command wait for what it needs, as `until nc -z HOST PORT; do sleep 1; done`")
	}
}

// succeedsBy says that the set has succeeded when one entry has.
func (s *jobSet) succeedsBy(r *replicated) bool { return len(s.targets) == 1 && s.targets[0] == r.name }

// leader is the entry whose one pod is rank 0; nil: none has to be.
func (s *jobSet) leader() *replicated {
	for i, r := range s.jobs {
		if r.size() == 1 && (s.succeedsBy(r) || i == 1 && s.startOrder == job.WorkersFirst) {
			return r
		}
	}
	return nil
}

// master says by whose end the set has succeeded.
func (s *jobSet) master(d *decoder) {
	g := s.spec.Gbatch
	if len(g.OfRanks) > 1 {
		g.StartOrder = s.startOrder
	}
	all := len(s.targets) == 0 || len(s.targets) == len(s.jobs)
	switch {
	case s.targetsNode == nil || len(g.OfRanks) < 2, all && !s.any:
	case s.leader() != nil && s.succeedsBy(s.leader()):
		g.StopWhen = job.MasterDone
		d.Becomes("gbatch.stopWhen", s.targetsNode)
	default:
		d.Problem(s.targetsNode, fmt.Sprintf("has the set succeed by %d of its %d jobs, and here it does by all pods or by one", len(s.targets), len(s.jobs)),
			"name one replicated job of one pod, or remove successPolicy and have the other pods end when the work is done")
	}
}
