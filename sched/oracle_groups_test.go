package sched

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
