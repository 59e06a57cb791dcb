package kubernetes

import (
	"cmp"
	"maps"
	"slices"

	"gbatch/internal/job"
)

// size is how many pods an entry has.
func (r *replicated) size() int { return r.replicas * r.completions }

// order finds whose one pod begins before or after all others.
func (s *jobSet) order(d *decoder) {
	last := len(s.jobs) - 1
	chain, two := s.inOrder != nil, last == 1
	first := chain && two || !chain && !slices.ContainsFunc(s.jobs[1:], func(r *replicated) bool { return len(r.after) != 1 || r.after[s.jobs[0].name] == nil })
	final := chain && two || !chain && len(s.jobs[last].after) == last && !slices.ContainsFunc(s.jobs[:last], func(r *replicated) bool { return len(r.after) > 0 })
	for _, r := range s.jobs {
		for _, name := range slices.Sorted(maps.Keys(r.after)) {
			s.inOrder = cmp.Or(s.inOrder, r.after[name])
		}
	}
	switch {
	case s.inOrder == nil || last == 0:
	case final && s.jobs[last].size() == 1 && !slices.ContainsFunc(s.jobs[:last], s.succeedsBy):
		s.startOrder = job.WorkersFirst
	case first && s.jobs[0].size() == 1 && !slices.ContainsFunc(s.jobs[1:], s.succeedsBy):
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
		if s.succeedsBy(r) || i == len(s.jobs)-1 && s.startOrder == job.WorkersFirst {
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
