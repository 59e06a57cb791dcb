package sched

import "fmt"

// ranksOf are the shapes of a job's ranks, one by one.
func ranksOf(s *Shape) (out []*Shape) {
	for i := range len(s.Groups) + 1 {
		one := s.Alone(i)
		n := one.Alike()
		one.Nodes = 0
		for range n {
			out = append(out, &one)
		}
	}
	return out
}

// seats counts the nodes that will do for a rank; where ranks are not alike, for how many
// of them there are nodes together, by trying all there is.
func seats(s *Shape, list []Node, will func(Node, *Shape) bool) int {
	if s.PerNode > 1 {
		if !together(ranksOf(s), s.PerNode, list, will) {
			return 0
		}
		return s.Ranks()
	}
	if len(s.Groups) > 0 {
		return seated(ranksOf(s), list, will)
	}
	count := 0
	for _, n := range list {
		if will(n, s) {
			count++
		}
	}
	return count
}

func seated(ranks []*Shape, list []Node, will func(Node, *Shape) bool) int {
	if len(ranks) == 0 || len(list) == 0 {
		return 0
	}
	most := seated(ranks, list[1:], will)
	for i, s := range ranks {
		if !will(list[0], s) {
			continue
		}
		others := append(append([]*Shape(nil), ranks[:i]...), ranks[i+1:]...)
		most = max(most, 1+seated(others, list[1:], will))
	}
	return most
}

// together says whether all ranks have room on nodes that up to so many of them share, by
// trying all there is.
func together(ranks []*Shape, perNode int, list []Node, will func(Node, *Shape) bool) bool {
	if len(ranks) == 0 {
		return true
	}
	if len(list) == 0 {
		return false
	}
	tried := map[string]bool{}
	for set := range 1 << len(ranks) {
		var here, others []*Shape
		key := ""
		for i, s := range ranks {
			if set&(1<<i) != 0 {
				here, key = append(here, s), key+fmt.Sprintf("%p ", s)
			} else {
				others = append(others, s)
			}
		}
		if len(here) > perNode || list[0].Apart && len(here) > 1 || tried[key] || !fitTogether(here, list[0], will) {
			continue
		}
		tried[key] = true
		if together(others, perNode, list[1:], will) {
			return true
		}
	}
	return false
}

// fitTogether says whether ranks have room on one node all at once, whose GPUs are of one
// model.
func fitTogether(ranks []*Shape, n Node, will func(Node, *Shape) bool) bool {
	var sum Shape
	for i, s := range ranks {
		if !will(n, s) {
			return false
		}
		if i == 0 {
			sum = *s
			continue
		}
		sum.MilliCPU += s.MilliCPU
		sum.MemMiB += s.MemMiB
		sum.DiskMiB += s.DiskMiB
		sum.MilliGPU += s.MilliGPU
	}
	return len(ranks) == 0 || will(n, &sum)
}
