package cgroups

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MaxCPU bounds CPU numbers, so that a damaged list cannot ask for gigabytes.
const MaxCPU = 1 << 16

// CPUSet is a set of CPU numbers. The zero value is the empty set. Methods
// never change their receiver, so sets can be shared freely.
type CPUSet struct {
	words []uint64 // no trailing zero words, so that equal sets compare equal
}

// NewCPUSet returns the set of the given CPU numbers. It panics on a number
// outside [0, MaxCPU): such a number is a programmer's error.
func NewCPUSet(cpus ...int) CPUSet {
	var s CPUSet
	for _, c := range cpus {
		if c < 0 || c >= MaxCPU {
			panic(fmt.Sprintf("cgroups: cpu %d is outside 0-%d", c, MaxCPU-1))
		}
		s.set(c)
	}
	return s
}

// ParseCPUSet reads the kernel's list format: "0-3,8,10-11", empty for none.
func ParseCPUSet(list string) (CPUSet, error) {
	var s CPUSet
	list = strings.TrimSpace(list)
	if list == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		a, err := parseCPU(lo)
		if err != nil {
			return CPUSet{}, fmt.Errorf("parse cpu list %q: %w", list, err)
		}
		b, err := parseCPU(hi)
		if err != nil {
			return CPUSet{}, fmt.Errorf("parse cpu list %q: %w", list, err)
		}
		if b < a {
			return CPUSet{}, fmt.Errorf("parse cpu list %q: range %q runs backwards", list, part)
		}
		for c := a; c <= b; c++ {
			s.set(c)
		}
	}
	return s, nil
}

func parseCPU(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n >= MaxCPU {
		return 0, fmt.Errorf("%q is not a cpu number below %d", s, MaxCPU)
	}
	return int(n), nil
}

// String writes the kernel's list format; ParseCPUSet reads it back.
func (s CPUSet) String() string {
	var b strings.Builder
	start, prev := -1, -1
	flush := func() {
		if start < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(start))
		if prev > start {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(prev))
		}
	}
	for _, c := range s.List() {
		if c != prev+1 || start < 0 {
			flush()
			start = c
		}
		prev = c
	}
	flush()
	return b.String()
}

// MarshalText and UnmarshalText make the list format the JSON form.
func (s CPUSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *CPUSet) UnmarshalText(text []byte) error {
	parsed, err := ParseCPUSet(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// List returns the numbers in ascending order.
func (s CPUSet) List() []int {
	out := make([]int, 0, s.Len())
	for i, w := range s.words {
		for w != 0 {
			out = append(out, i*64+bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
	return out
}

// Len returns how many CPUs the set has.
func (s CPUSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Has says whether cpu is in the set.
func (s CPUSet) Has(cpu int) bool {
	return cpu >= 0 && cpu/64 < len(s.words) && s.words[cpu/64]&(1<<(cpu%64)) != 0
}

// IsEmpty says whether the set has no CPU.
func (s CPUSet) IsEmpty() bool { return len(s.words) == 0 }

// Union returns the CPUs that are in either set.
func (s CPUSet) Union(o CPUSet) CPUSet {
	return s.combine(o, func(a, b uint64) uint64 { return a | b })
}

// Intersect returns the CPUs that are in both sets.
func (s CPUSet) Intersect(o CPUSet) CPUSet {
	return s.combine(o, func(a, b uint64) uint64 { return a & b })
}

// Minus returns the CPUs of s that are not in o.
func (s CPUSet) Minus(o CPUSet) CPUSet {
	return s.combine(o, func(a, b uint64) uint64 { return a &^ b })
}

func (s CPUSet) combine(o CPUSet, op func(a, b uint64) uint64) CPUSet {
	out := CPUSet{words: make([]uint64, max(len(s.words), len(o.words)))}
	for i := range out.words {
		out.words[i] = op(s.word(i), o.word(i))
	}
	out.trim()
	return out
}

func (s CPUSet) word(i int) uint64 {
	if i < len(s.words) {
		return s.words[i]
	}
	return 0
}

// set is only for a set that is still being built and not shared.
func (s *CPUSet) set(cpu int) {
	for len(s.words) <= cpu/64 {
		s.words = append(s.words, 0)
	}
	s.words[cpu/64] |= 1 << (cpu % 64)
}

func (s *CPUSet) trim() {
	n := len(s.words)
	for n > 0 && s.words[n-1] == 0 {
		n--
	}
	s.words = s.words[:n]
	if n == 0 {
		s.words = nil
	}
}
