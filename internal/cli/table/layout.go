package table

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
)

// Layout is how rows are listed: by a format of Slurm's, or as a table with
// columns.
type Layout[T any] struct {
	fields  []field[T]
	columns []*Column[T]
}

// Layout reads what -o takes: a format with percent signs, or names of columns
// with commas between them.
func (set Set[T]) Layout(text string) (l Layout[T], err error) {
	if strings.Contains(text, "%") {
		return set.Format(text)
	}
	l.columns, err = set.choose(text)
	return l, err
}

// Columns is the table that the program itself chooses, by names. One that is
// not there is a fault of the program.
func (set Set[T]) Columns(names string) Layout[T] {
	columns, err := set.choose(names)
	if err != nil {
		panic(err)
	}
	return Layout[T]{columns: columns}
}

// Of is a table of these columns.
func Of[T any](columns []*Column[T]) Layout[T] { return Layout[T]{columns: columns} }

// IsFormat says that programs read what is written.
func (l Layout[T]) IsFormat() bool { return l.fields != nil }

// Asked says whether a column is shown that the controller must be asked for.
func (l Layout[T]) Asked() bool {
	return slices.ContainsFunc(l.fields, func(f field[T]) bool { return f.col != nil && f.col.Asked }) ||
		slices.ContainsFunc(l.columns, func(c *Column[T]) bool { return c.Asked })
}

// Write lists rows.
func (l Layout[T]) Write(w io.Writer, rows []T, v View) error {
	if l.fields != nil {
		v.Relative = false // Slurm's letters have Slurm's times
		return writeFormat(w, l.fields, rows, &v)
	}
	g := &Grid{limit: v.Width, noHeader: v.NoHeader, color: v.Color}
	for _, c := range l.columns {
		g.columns = append(g.columns, gridColumn{title: c.Title, right: c.Right, least: c.Least, keep: c.Keep, color: c.Color})
	}
	for i := range rows {
		for _, c := range l.columns {
			g.cell(func(b []byte) []byte { return c.Cell(&v, b, &rows[i]) })
		}
	}
	return g.Write(w)
}

// field is one part of a format: a column, or text as it is.
type field[T any] struct {
	literal string
	col     *Column[T]
	width   int  // exactly so wide, cutting if need be; 0: as wide as the cell
	right   bool // aligned
}

// MaxWidth bounds the width of one field or column that a user asks for.
const MaxWidth = 1000

// Format reads Slurm's format: %[[.]width]letter and text between. A dot aligns
// right. %% is a percent sign.
func (set Set[T]) Format(format string) (Layout[T], error) {
	none := Layout[T]{}
	out := []field[T]{}
	for rest := format; rest != ""; {
		at := strings.IndexByte(rest, '%')
		if at != 0 {
			if at < 0 {
				at = len(rest)
			}
			out = append(out, field[T]{literal: rest[:at]})
			rest = rest[at:]
			continue
		}
		rest = rest[1:]
		f := field[T]{}
		if strings.HasPrefix(rest, ".") {
			f.right, rest = true, rest[1:]
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits > 0 {
			n, err := strconv.Atoi(rest[:digits])
			if err != nil || n < 1 || n > MaxWidth {
				return none, exit.Usagef("format %q: a width is between 1 and %d, not %s", format, MaxWidth, rest[:digits])
			}
			f.width, rest = n, rest[digits:]
		}
		if rest == "" {
			return none, exit.Usagef("format %q ends after a percent sign: a letter must follow, one of %s", format, set.letters())
		}
		if rest[0] == '%' && digits == 0 && !f.right {
			out, rest = append(out, field[T]{literal: "%"}), rest[1:]
			continue
		}
		if f.col = set.letter(rest[0]); f.col == nil {
			return none, exit.Usagef("format %q: no column has the letter %q; there are %s", format, rest[:1], set.letters())
		}
		out, rest = append(out, f), rest[1:]
	}
	return Layout[T]{fields: out}, nil
}

// writeFormat prints rows by a format, one line each.
func writeFormat[T any](w io.Writer, fields []field[T], rows []T, v *View) error {
	var out bytes.Buffer
	line := func(cell func(c *Column[T]) string) {
		for _, f := range fields {
			if f.col == nil {
				out.WriteString(f.literal)
			} else {
				f.put(&out, cell(f.col))
			}
		}
		out.WriteByte('\n')
	}
	if !v.NoHeader {
		line(func(c *Column[T]) string { return c.Title })
	}
	var cell []byte
	for i := range rows {
		line(func(c *Column[T]) string {
			cell = c.Cell(v, cell[:0], &rows[i])
			return string(cell)
		})
	}
	_, err := w.Write(out.Bytes())
	return err
}

// put writes a cell in the field's width.
func (f *field[T]) put(out *bytes.Buffer, s string) {
	s = human.Clean(s)
	if f.width == 0 {
		out.WriteString(s)
		return
	}
	s = human.Trim(s, f.width)
	gap := f.width - human.Width(s)
	if f.right {
		pad(out, gap)
	}
	out.WriteString(s)
	if !f.right {
		pad(out, gap)
	}
}

// Shows says whether a column is shown, by its name.
func (l Layout[T]) Shows(name string) bool {
	is := func(c *Column[T]) bool { return c != nil && c.Name() == name }
	return slices.ContainsFunc(l.fields, func(f field[T]) bool { return is(f.col) }) || slices.ContainsFunc(l.columns, is)
}
