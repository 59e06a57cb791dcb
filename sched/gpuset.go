package sched

import "math/bits"

// gpuSet is a set of GPUs of one node, by position in its inventory.
type gpuSet [2]uint64

func (s gpuSet) has(i int) bool         { return s[i>>6]>>(i&63)&1 != 0 }
func (s *gpuSet) add(i int)             { s[i>>6] |= 1 << (i & 63) }
func (s *gpuSet) remove(i int)          { s[i>>6] &^= 1 << (i & 63) }
func (s gpuSet) count() int             { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }
func (s gpuSet) empty() bool            { return s[0]|s[1] == 0 }
func (s gpuSet) and(o gpuSet) gpuSet    { return gpuSet{s[0] & o[0], s[1] & o[1]} }
func (s gpuSet) or(o gpuSet) gpuSet     { return gpuSet{s[0] | o[0], s[1] | o[1]} }
func (s gpuSet) andNot(o gpuSet) gpuSet { return gpuSet{s[0] &^ o[0], s[1] &^ o[1]} }

// next is the lowest member that is i or above, -1 if there is none.
func (s gpuSet) next(i int) int {
	for w := i >> 6; w < len(s); w++ {
		m := s[w]
		if w == i>>6 {
			m &= ^uint64(0) << (i & 63)
		}
		if m != 0 {
			return w<<6 + bits.TrailingZeros64(m)
		}
	}
	return -1
}

// lowest is the n lowest members.
func (s gpuSet) lowest(n int) gpuSet {
	var out gpuSet
	for i := s.next(0); i >= 0 && n > 0; i = s.next(i + 1) {
		out.add(i)
		n--
	}
	return out
}

// nodeSet is a set of nodes of one kind, by position.
type nodeSet []uint64

func (s nodeSet) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s nodeSet) remove(i int)   { s[i>>6] &^= 1 << (i & 63) }
func (s nodeSet) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// next is the lowest member that is i or above, -1 if there is none.
func (s nodeSet) next(i int) int {
	for w := i >> 6; w < len(s); w++ {
		m := s[w]
		if w == i>>6 {
			m &= ^uint64(0) << (i & 63)
		}
		if m != 0 {
			return w<<6 + bits.TrailingZeros64(m)
		}
	}
	return -1
}
