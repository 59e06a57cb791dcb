// Package indexes is sets of task indexes: how a user writes them, and what may
// be asked of them. It knows nothing of jobs and their tasks.
package indexes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Set is a set of task indexes, kept as ranges: ascending, with at least one
// index missing between two of them. The zero value is the empty set. Values are
// immutable.
type Set []Range

// Range is the indexes First to Last, both included.
type Range struct{ First, Last int }

// Step is the distance between two indexes, where it is the same between all
// of them; else 1.
func (s Set) Step() int {
	step := 1
	for i := range s {
		switch {
		case s[i].First != s[i].Last:
			return 1
		case i == 1:
			step = s[1].First - s[0].First
		case i > 1 && s[i].First-s[i-1].First != step:
			return 1
		}
	}
	return step
}

// Max bounds the indexes that are read as one set.
const Max = 100_000

// maxIndex is the highest index that a task may have.
const maxIndex = 10_000_000

// First is the text of 0 to count-1.
func First(count int) string {
	return Set{{0, count - 1}}.String()
}

// ParseArray reads Slurm's form: a set of indexes, and behind a % how many may
// be active at once (0: no bound).
func ParseArray(text string) (set Set, most int, err error) {
	list, bound, bounded := strings.Cut(text, "%")
	if set, err = Parse(list); err != nil {
		return nil, 0, err
	}
	if bounded {
		if most, err = strconv.Atoi(bound); err != nil || most < 1 {
			return nil, 0, errors.New("want a number above 0 behind the %")
		}
	}
	return set, most, nil
}

// Parse reads a list such as "0-9,20-40:5": numbers and ranges, a range with an
// optional step. At most Max indexes. Empty text is no set.
func Parse(text string) (Set, error) {
	var rs Set
	total := 0
	for part := range strings.SplitSeq(text, ",") {
		first, last, step, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if total += (last-first)/step + 1; total > Max {
			return nil, fmt.Errorf("has more than %d tasks", Max)
		}
		if step == 1 {
			rs = append(rs, Range{first, last})
			continue
		}
		for i := first; i <= last; i += step {
			rs = append(rs, Range{i, i})
		}
	}
	return rs.merge()
}

func parseRange(s string) (first, last, step int, err error) {
	body, stepText, stepped := strings.Cut(s, ":")
	firstText, lastText, ranged := strings.Cut(body, "-")
	step = 1
	if first, err = parseIndex(firstText); err != nil {
		return
	}
	last = first
	if ranged {
		if last, err = parseIndex(lastText); err != nil {
			return
		}
	}
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || !ranged {
			return 0, 0, 0, fmt.Errorf("%s has no step: want a range and a number above 0, as 0-20:5", document.Quote(s))
		}
		step = min(step, maxIndex+1) // a longer one leads out of the range as well, and the sum does not overflow
	}
	if last < first {
		return 0, 0, 0, fmt.Errorf("%s ends before it begins", document.Quote(s))
	}
	return first, last, step, nil
}

func parseIndex(s string) (int, error) {
	i, err := strconv.Atoi(s)
	if err != nil || i < 0 || s[0] == '+' {
		return 0, fmt.Errorf("%s is no index", document.Quote(s))
	}
	if i > maxIndex {
		return 0, fmt.Errorf("index %d is above %d", i, maxIndex)
	}
	return i, nil
}

// merge sorts ranges and joins neighbours; an index that is there twice is an
// error.
func (s Set) merge() (Set, error) {
	slices.SortFunc(s, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var out Set
	for _, r := range s {
		if k := len(out) - 1; k >= 0 && r.First <= out[k].Last {
			return nil, fmt.Errorf("has index %d twice", r.First)
		} else if k >= 0 && r.First == out[k].Last+1 {
			out[k].Last = r.Last
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// String is the set as Parse reads it, without steps.
func (s Set) String() string {
	var b []byte
	for i, r := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.First), 10)
		if r.Last > r.First {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(r.Last), 10)
		}
	}
	return string(b)
}

// Len is the number of indexes.
func (s Set) Len() int {
	n := 0
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// find is the position of the range that has i or would come next.
func (s Set) find(i int) (int, bool) {
	return slices.BinarySearchFunc(s, i, func(r Range, i int) int {
		switch {
		case r.Last < i:
			return -1
		case r.First > i:
			return 1
		}
		return 0
	})
}

// Has says whether i is in the set.
func (s Set) Has(i int) bool { _, ok := s.find(i); return ok }

// Within says that all of s is in t.
func (s Set) Within(t Set) bool {
	for _, r := range s {
		if k, ok := t.find(r.First); !ok || t[k].Last < r.Last {
			return false
		}
	}
	return true
}

// Minus is what is in s and not in t.
func (s Set) Minus(t Set) Set {
	var out Set
	k := 0
	for _, r := range s {
		at := r.First
		for ; k < len(t) && t[k].First <= r.Last; k++ {
			if t[k].First > at {
				out = append(out, Range{at, t[k].First - 1})
			}
			if at = max(at, t[k].Last+1); t[k].Last > r.Last {
				break // it may reach into the next range of s
			}
		}
		if at <= r.Last {
			out = append(out, Range{at, r.Last})
		}
	}
	return out
}

// With is the set with i.
func (s Set) With(i int) Set {
	k, ok := s.find(i)
	if ok {
		return s
	}
	out := slices.Insert(slices.Clone(s), k, Range{i, i})
	if k+1 < len(out) && out[k+1].First == i+1 {
		out[k].Last = out[k+1].Last
		out = slices.Delete(out, k+1, k+2)
	}
	if k > 0 && out[k-1].Last == i-1 {
		out[k-1].Last = out[k].Last
		out = slices.Delete(out, k, k+1)
	}
	return out
}

// Short is String, with an end to how long it is in a sentence.
func (s Set) Short() string {
	const most = 20
	if len(s) <= most {
		return s.String()
	}
	return s[:most].String() + ",..."
}
