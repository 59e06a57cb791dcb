package nodes

import "math/bits"

// GPUSet is a set of GPUs of one node, by position in its inventory.
type GPUSet [2]uint64

// Has, Add, Remove, Count, Empty, And, Or and AndNot are the operations on sets.
func (s GPUSet) Has(i int) bool         { return s[i>>6]>>(i&63)&1 != 0 }
func (s *GPUSet) Add(i int)             { s[i>>6] |= 1 << (i & 63) }
func (s *GPUSet) Remove(i int)          { s[i>>6] &^= 1 << (i & 63) }
func (s GPUSet) Count() int             { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }
func (s GPUSet) Empty() bool            { return s[0]|s[1] == 0 }
func (s GPUSet) And(o GPUSet) GPUSet    { return GPUSet{s[0] & o[0], s[1] & o[1]} }
func (s GPUSet) or(o GPUSet) GPUSet     { return GPUSet{s[0] | o[0], s[1] | o[1]} }
func (s GPUSet) AndNot(o GPUSet) GPUSet { return GPUSet{s[0] &^ o[0], s[1] &^ o[1]} }

// Next is the lowest member that is i or above, -1 if there is none.
func (s GPUSet) Next(i int) int {
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
func (s GPUSet) lowest(n int) GPUSet {
	var out GPUSet
	for i := s.Next(0); i >= 0 && n > 0; i = s.Next(i + 1) {
		out.Add(i)
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
