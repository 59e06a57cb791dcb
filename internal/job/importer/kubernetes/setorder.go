package kubernetes

import (
	"slices"

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
	last := len(s.jobs) - 1
	switch {
	case s.inOrder == nil || last == 0:
	case last == 1 && s.jobs[1].size() == 1 && !s.succeedsBy(s.jobs[0]):
		s.startOrder = job.WorkersFirst
	case last == 1 && s.jobs[0].size() == 1 && !s.succeedsBy(s.jobs[1]):
		s.startOrder = job.MasterFirst
	default:
		d.Problem(s.inOrder, "has jobs begin one after the other, and here one pod can begin before or after all others",
			"remove it, and have a command wait for what it needs, as `until nc -z HOST PORT; do sleep 1; done`")
	}
}

// succeedsBy says that the set has succeeded when an entry has, maybe with others, and not
// all.
func (s *jobSet) succeedsBy(r *replicated) bool {
	return len(s.targets) < len(s.jobs) && slices.Contains(s.targets, r.name)
}

// leading puts the parts first by whose end the set succeeds, or whose one pod begins after
// all others.
func (s *jobSet) leading(parts []*part) []*part {
	var first, others []*part
	for i, r := range s.jobs {
		if s.succeedsBy(r) || i == 1 && s.startOrder == job.WorkersFirst {
			first = append(first, parts[i])
		} else {
			others = append(others, parts[i])
		}
	}
	return append(first, others...)
}

// master says by whose end the set has succeeded.
func (s *jobSet) master(d *decoder) {
	g, pods, jobs := s.spec.Gbatch, 0, 0
	for _, r := range s.jobs {
		if s.succeedsBy(r) {
			pods, jobs = pods+r.size(), jobs+r.replicas
		}
	}
	if len(g.OfRanks) > 1 {
		g.StartOrder = s.startOrder
	}
	switch {
	case s.targetsNode == nil || len(g.OfRanks) < 2:
	case s.any && (pods == 0 || jobs > 1):
		d.Problem(s.targetsNode, "has the set succeed by any of several jobs, and here it does by all or by those that are named", "name one replicated job, with one replica")
	case pods > 0:
		stopAfter(g, pods)
		d.Becomes("gbatch.stopWhen", s.targetsNode)
	}
}

// stopAfter has the first ranks end the others.
func stopAfter(g *job.Gbatch, ranks int) {
	if g.StopWhen = job.MasterDone; ranks > 1 {
		g.StopRanks = ranks
	}
}
