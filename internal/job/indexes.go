package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Indexes is a set of task indexes, kept as ranges: ascending, with at least
// one index missing between two of them. The zero value is the empty set.
// Values are immutable.
type Indexes []IndexRange

// IndexRange is the indexes First to Last, both included.
type IndexRange struct{ First, Last int }

// Step is the distance between two indexes, where it is the same between all
// of them; else 1.
func (s Indexes) Step() int {
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

// maxIndex is the highest index that a task may have.
const maxIndex = 10_000_000

// FirstIndexes is the text of 0 to count-1.
func FirstIndexes(count int) string {
	return Indexes{{0, count - 1}}.String()
}

// ParseArray reads Slurm's form: a set of indexes, and behind a % how many may
// be active at once (0: no bound).
func ParseArray(text string) (set Indexes, most int, err error) {
	list, bound, bounded := strings.Cut(text, "%")
	if set, err = ParseIndexes(list); err != nil {
		return nil, 0, err
	}
	if bounded {
		if most, err = strconv.Atoi(bound); err != nil || most < 1 {
			return nil, 0, errors.New("want a number above 0 behind the %")
		}
	}
	return set, most, nil
}

// ParseIndexes reads a list such as "0-9,20-40:5": numbers and ranges, a range
// with an optional step. At most MaxTasks indexes. Empty text is no set.
func ParseIndexes(text string) (Indexes, error) {
	var rs Indexes
	total := 0
	for part := range strings.SplitSeq(text, ",") {
		first, last, step, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if total += (last-first)/step + 1; total > MaxTasks {
			return nil, fmt.Errorf("has more than %d tasks", MaxTasks)
		}
		if step == 1 {
			rs = append(rs, IndexRange{first, last})
			continue
		}
		for i := first; i <= last; i += step {
			rs = append(rs, IndexRange{i, i})
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
func (s Indexes) merge() (Indexes, error) {
	slices.SortFunc(s, func(a, b IndexRange) int { return cmp.Compare(a.First, b.First) })
	var out Indexes
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

// String is the set as ParseIndexes reads it, without steps.
func (s Indexes) String() string {
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
func (s Indexes) Len() int {
	n := 0
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// find is the position of the range that has i or would come next.
func (s Indexes) find(i int) (int, bool) {
	return slices.BinarySearchFunc(s, i, func(r IndexRange, i int) int {
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
func (s Indexes) Has(i int) bool { _, ok := s.find(i); return ok }

// First is the lowest index; ok is false for the empty set.
func (s Indexes) First() (i int, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	return s[0].First, true
}

// Within says that all of s is in t.
func (s Indexes) Within(t Indexes) bool {
	for _, r := range s {
		if k, ok := t.find(r.First); !ok || t[k].Last < r.Last {
			return false
		}
	}
	return true
}

// Minus is what is in s and not in t.
func (s Indexes) Minus(t Indexes) Indexes {
	var out Indexes
	k := 0
	for _, r := range s {
		at := r.First
		for ; k < len(t) && t[k].First <= r.Last; k++ {
			if t[k].First > at {
				out = append(out, IndexRange{at, t[k].First - 1})
			}
			if at = max(at, t[k].Last+1); t[k].Last > r.Last {
				break // it may reach into the next range of s
			}
		}
		if at <= r.Last {
			out = append(out, IndexRange{at, r.Last})
		}
	}
	return out
}

// With is the set with i.
func (s Indexes) With(i int) Indexes {
	k, ok := s.find(i)
	if ok {
		return s
	}
	out := slices.Insert(slices.Clone(s), k, IndexRange{i, i})
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
func (s Indexes) Short() string {
	const most = 20
	if len(s) <= most {
		return s.String()
	}
	return s[:most].String() + ",..."
}
