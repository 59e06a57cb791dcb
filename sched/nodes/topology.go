package nodes

import (
	"slices"

	"gbatch/sched/spec"
)

// gpuGroups is the domains of a node's GPUs, closest first: those that share
// NVLink and NUMA node, those that share NVLink, those that share a NUMA node,
// and all. Each level is a partition of the GPUs.
func gpuGroups(n *spec.Node) [][]GPUSet {
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
	var out [][]GPUSet
	for _, of := range levels {
		var keys [][2]int
		var sets []GPUSet
		for i := range n.GPUs {
			k := slices.Index(keys, of(i))
			if k < 0 {
				k = len(keys)
				keys, sets = append(keys, of(i)), append(sets, GPUSet{})
			}
			sets[k].Add(i)
		}
		out = append(out, sets)
	}
	return out
}

// Pick chooses n of the GPUs in avail that are as close together as can be, and
// of equally close ones those that break up least. The second result is the
// level of closeness, 0 the best.
func (kind *Kind) Pick(avail GPUSet, n int) (GPUSet, int) {
	if n == 0 {
		return GPUSet{}, 0
	}
	for level, sets := range kind.groups {
		best, size := GPUSet{}, spec.MaxGPUs+1
		for _, g := range sets {
			if c := avail.And(g).Count(); c >= n && c < size {
				best, size = avail.And(g), c
			}
		}
		if size > spec.MaxGPUs {
			continue
		}
		if level == 0 || size == n {
			return best.lowest(n), level
		}
		return kind.gather(best, n, level), level
	}
	panic("sched: fewer GPUs to choose from than asked")
}

// gather takes n GPUs of one domain out of its closest parts: the largest that
// are needed as a whole first, then part of the smallest that has enough.
func (kind *Kind) gather(avail GPUSet, n, level int) GPUSet {
	var out GPUSet
	for n > 0 {
		large, part := GPUSet{}, GPUSet{}
		for _, g := range kind.groups[0] {
			a := avail.And(g)
			switch c := a.Count(); {
			case c == 0:
			case c <= n && c > large.Count():
				large = a
			case c > n && (part.Empty() || c < part.Count()):
				part = a
			}
		}
		take := large
		if take.Empty() {
			take = part.lowest(n)
		}
		out, avail, n = out.or(take), avail.AndNot(take), n-take.Count()
	}
	return out
}
