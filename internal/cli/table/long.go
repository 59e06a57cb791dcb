package table

import (
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/cli/exit"
)

// longWidth is how wide a field of Slurm's long form is that names no width.
const longWidth = 20

// Long reads Slurm's long form of a format: NAME[:[.][WIDTH][TEXT]],... where a
// dot aligns right and TEXT follows each cell. Behind a colon without a width a cell is
// as wide as its text.
func (set Set[T]) Long(format string) (Layout[T], error) {
	out := []field[T]{}
	for part := range strings.SplitSeq(format, ",") {
		name, how, told := strings.Cut(part, ":")
		f := field[T]{width: longWidth}
		if told {
			f.width = 0
		}
		if f.col = set.long(strings.TrimSpace(name)); f.col == nil {
			return Layout[T]{}, exit.Usagef("format %q: there is no field %q; there are %s", format, name, set.Known())
		}
		how, f.right = strings.CutPrefix(how, ".")
		text := strings.TrimLeft(how, "0123456789")
		if digits := how[:len(how)-len(text)]; digits != "" {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || n > MaxWidth {
				return Layout[T]{}, exit.Usagef("format %q: a width is between 1 and %d, not %s", format, MaxWidth, digits)
			}
			f.width = n
		}
		if out = append(out, f); text != "" {
			out = append(out, field[T]{literal: text})
		}
	}
	return Layout[T]{fields: out}, nil
}

// long finds a column by its name; one letter is none.
func (set Set[T]) long(name string) *Column[T] {
	for i := range set {
		if slices.ContainsFunc(set[i].names(), func(known string) bool { return strings.EqualFold(known, name) }) {
			return &set[i]
		}
	}
	return nil
}
