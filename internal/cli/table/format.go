package table

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
)

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
