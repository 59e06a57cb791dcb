package sched

import (
	"slices"

	"gbatch/sched/spec"
)

// gpuGroups is the domains of a node's GPUs, closest first: those that share
// NVLink and NUMA node, those that share NVLink, those that share a NUMA node,
// and all. Each level is a partition of the GPUs.
func gpuGroups(n *spec.Node) [][]gpuSet {
	at := map[string]int{}
	for i, g := range n.GPUs {
		at[g.UUID] = i
	}
	link := make([]int, len(n.GPUs)) // lowest GPU that is reached over NVLink
	for i := range link {
		link[i] = i
	}
	root := func(i int) int {
		for link[i] != i {
			i = link[i]
		}
		return i
	}
	for i, g := range n.GPUs {
		for _, l := range g.Links {
			if j, ok := at[l]; ok {
				a, b := root(i), root(j)
				link[max(a, b)] = min(a, b)
			}
		}
	}
	numa := func(i int) int { return n.GPUs[i].NUMA }
	levels := []func(i int) [2]int{
		func(i int) [2]int { return [2]int{root(i), numa(i)} },
		func(i int) [2]int { return [2]int{root(i), 0} },
		func(i int) [2]int { return [2]int{0, numa(i)} },
		func(i int) [2]int { return [2]int{} },
	}
	var out [][]gpuSet
	for _, of := range levels {
		var keys [][2]int
		var sets []gpuSet
		for i := range n.GPUs {
			k := slices.Index(keys, of(i))
			if k < 0 {
				k = len(keys)
				keys, sets = append(keys, of(i)), append(sets, gpuSet{})
			}
			sets[k].add(i)
		}
		out = append(out, sets)
	}
	return out
}

// pick chooses n of the GPUs in avail that are as close together as can be, and
// of equally close ones those that break up least. The second result is the
// level of closeness, 0 the best.
func (k *nodeKind) pick(avail gpuSet, n int) (gpuSet, int) {
	if n == 0 {
		return gpuSet{}, 0
	}
	for level, sets := range k.groups {
		best, size := gpuSet{}, spec.MaxGPUs+1
		for _, g := range sets {
			if c := avail.and(g).count(); c >= n && c < size {
				best, size = avail.and(g), c
			}
		}
		if size > spec.MaxGPUs {
			continue
		}
		if level == 0 || size == n {
			return best.lowest(n), level
		}
		return k.gather(best, n, level), level
	}
	panic("sched: fewer GPUs to choose from than asked")
}

// gather takes n GPUs of one domain out of its closest parts: the largest that
// are needed as a whole first, then part of the smallest that has enough.
func (k *nodeKind) gather(avail gpuSet, n, level int) gpuSet {
	var out gpuSet
	for n > 0 {
		large, part := gpuSet{}, gpuSet{}
		for _, g := range k.groups[0] {
			a := avail.and(g)
			switch c := a.count(); {
			case c == 0:
			case c <= n && c > large.count():
				large = a
			case c > n && (part.empty() || c < part.count()):
				part = a
			}
		}
		take := large
		if take.empty() {
			take = part.lowest(n)
		}
		out, avail, n = out.or(take), avail.andNot(take), n-take.count()
	}
	return out
}
