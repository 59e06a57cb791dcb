// Package nodelist reads and writes names of nodes as Slurm does: n[01-03,7],m1. It is pure.
package nodelist

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Bounds of a list that is expanded: its names, what is in front of a name's number, and
// the number with its zeros.
const (
	maxNames  = 10_000
	maxPrefix = 253
	maxDigits = 9
)

// series is some names of a list: one, or those that differ in their numbers alone.
type series struct {
	prefix, first string // first is the lowest number with its zeros; "": the prefix is the name
	low, high     uint64
}

func (s series) size() int { return int(s.high-s.low) + 1 }

// Parse reads names of nodes as Slurm writes them: n[01-03,7],m1.
func Parse(list string) ([]string, error) {
	var names []string
	err := eachSeries(list, func(s series) {
		if s.first == "" {
			names = append(names, s.prefix)
			return
		}
		for n := s.low; n <= s.high; n++ {
			names = append(names, fmt.Sprintf("%s%0*d", s.prefix, len(s.first), n))
		}
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// Count is how many names Parse would make, without making them.
func Count(list string) (n int, err error) {
	err = eachSeries(list, func(s series) { n += s.size() })
	return n, err
}

// eachSeries takes a list apart. It has at most maxNames names where ranges are
// among them.
func eachSeries(list string, take func(series)) error {
	names := 0
	for rest := list; rest != ""; {
		at := strings.IndexAny(rest, ",[")
		if at < 0 {
			at = len(rest)
		}
		prefix, tail := rest[:at], rest[at:]
		if !strings.HasPrefix(tail, "[") {
			if prefix != "" {
				names++
				take(series{prefix: prefix})
			}
			rest = strings.TrimPrefix(tail, ",")
			continue
		}
		ranges, after, closed := strings.Cut(tail[1:], "]")
		if rest = strings.TrimPrefix(after, ","); !closed || after != "" && after == rest {
			return errors.New("has a bracket that is not closed, or text behind one")
		}
		for part := range strings.SplitSeq(ranges, ",") {
			first, last, ranged := strings.Cut(part, "-")
			if !ranged {
				last = first
			}
			low, err := strconv.ParseUint(first, 10, 32)
			high, err2 := strconv.ParseUint(last, 10, 32)
			s := series{prefix, first, low, high}
			switch {
			case err != nil || err2 != nil || high < low || len(first) > maxDigits || len(prefix) > maxPrefix:
				return fmt.Errorf("%s is no range of numbers; write gpu[01-04,07]", document.Quote(part))
			case names+s.size() > maxNames:
				return fmt.Errorf("has more than %d nodes", maxNames)
			}
			names += s.size()
			take(s)
		}
	}
	return nil
}

// Format writes names of nodes as Slurm does, in their order: n[01-03,7],m1.
func Format(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		prefix, _, _ := splitNumber(names[i])
		end := i + 1
		for end < len(names) && sameSeries(names[end], names[i]) {
			end++
		}
		if end == i+1 {
			parts = append(parts, names[i])
		} else {
			parts = append(parts, prefix+"["+ranges(names[i:end])+"]")
		}
		i = end
	}
	return strings.Join(parts, ",")
}

// sameSeries says that two names differ in their numbers alone, and in no zeros
// in front of them.
func sameSeries(a, b string) bool {
	p, digits, ok := splitNumber(a)
	p2, digits2, ok2 := splitNumber(b)
	zeros := digits != "" && digits2 != "" && (digits[0] == '0' && len(digits) > 1 || digits2[0] == '0' && len(digits2) > 1)
	return ok && ok2 && p == p2 && (!zeros || len(digits) == len(digits2))
}

// ranges writes the numbers of names of one series.
func ranges(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		_, first, _ := splitNumber(names[i])
		last, end := first, i+1
		for ; end < len(names); end++ {
			_, next, _ := splitNumber(names[end])
			n, _ := strconv.Atoi(last)
			if m, _ := strconv.Atoi(next); m != n+1 || !sameSeries(names[end-1], names[end]) {
				break
			}
			last = next
		}
		if last == first {
			parts = append(parts, first)
		} else {
			parts = append(parts, first+"-"+last)
		}
		i = end
	}
	return strings.Join(parts, ",")
}

// splitNumber takes the number off the end of a name.
func splitNumber(name string) (prefix, digits string, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	digits = name[len(prefix):]
	return prefix, digits, digits != "" && len(digits) <= maxDigits && prefix != "" && !strings.ContainsAny(prefix, "[],")
}

// Repeats writes a number for each node as Slurm does: 4(x2),1.
func Repeats(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		n := i
		for n < len(numbers) && numbers[n] == numbers[i] {
			n++
		}
		text := strconv.Itoa(numbers[i])
		if n > i+1 {
			text += fmt.Sprintf("(x%d)", n-i)
		}
		parts, i = append(parts, text), n
	}
	return strings.Join(parts, ",")
}
