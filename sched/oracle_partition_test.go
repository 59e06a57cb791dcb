package sched

import "slices"

// ways are the job in each of its partitions that is up.
func (o *oracle) ways(j Job) (out []Job) {
	if len(j.Shape.Partitions) == 0 {
		return []Job{j}
	}
	for _, p := range j.Shape.Partitions {
		if !o.in.State.policy.Partitions[p].Down {
			way, shape := j, *j.Shape
			shape.Partitions, way.Shape = []string{p}, &shape
			out = append(out, way)
		}
	}
	return out
}

// together says whether one partition that is up has all the nodes of a job.
func (o *oracle) together(j Job, ranks []Allocation, in func(partition string) bool) bool {
	return len(j.Shape.Partitions) == 0 || slices.ContainsFunc(o.ways(j), func(way Job) bool {
		for i, s := range ranksOf(way.Shape) {
			if !could(o.in.State.index.Nodes[ranks[i].Node].Node, s) {
				return false
			}
		}
		return in(way.Shape.Partitions[0])
	})
}

// code is the reason, other than limit and begin time, that holds for a job
// that does not start; by what ran before the round.
func (o *oracle) code(j Job) Code {
	best := CodePartition
	for _, way := range o.ways(j) {
		if code := o.codeIn(way); best == CodePartition || codeOrder(code) > codeOrder(best) {
			best = code
		}
	}
	return best
}
