package cli

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// field is one part of a -o format: a column, or text as it is.
type field[T any] struct {
	literal string
	col     *column[T]
	width   int  // exactly so wide, cutting if need be; 0: as wide as the cell
	right   bool // aligned
}

// maxFieldWidth bounds the width of one field.
const maxFieldWidth = 1000

// parseFormat reads Slurm's format: %[[.]width]letter and text between. A dot
// aligns right. %% is a percent sign.
func parseFormat[T any](format string, set columnSet[T]) ([]field[T], error) {
	var out []field[T]
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
			if err != nil || n < 1 || n > maxFieldWidth {
				return nil, usageError("format %q: a width is between 1 and %d, not %s", format, maxFieldWidth, rest[:digits])
			}
			f.width, rest = n, rest[digits:]
		}
		if rest == "" {
			return nil, usageError("format %q ends after a percent sign: a letter must follow, one of %s", format, set.letters())
		}
		if rest[0] == '%' && digits == 0 && !f.right {
			out, rest = append(out, field[T]{literal: "%"}), rest[1:]
			continue
		}
		if f.col = set.of(rest[0]); f.col == nil || rest[0] <= ' ' {
			return nil, usageError("format %q: no column has the letter %q; there are %s", format, rest[:1], set.letters())
		}
		out, rest = append(out, f), rest[1:]
	}
	return out, nil
}

// writeFormat prints things by a format, one line each.
func writeFormat[T any](w io.Writer, fields []field[T], rows []T, v *view, header bool) error {
	var out bytes.Buffer
	if header {
		for _, f := range fields {
			if f.col != nil {
				f.put(&out, f.col.title)
			} else {
				out.WriteString(f.literal)
			}
		}
		out.WriteByte('\n')
	}
	var cell []byte
	for i := range rows {
		for _, f := range fields {
			if f.col == nil {
				out.WriteString(f.literal)
				continue
			}
			cell = f.col.cell(v, cell[:0], &rows[i])
			f.put(&out, string(cell))
		}
		out.WriteByte('\n')
	}
	_, err := w.Write(out.Bytes())
	return err
}

// namedColumns reads the names of columns, separated by commas.
func namedColumns[T any](names string, set columnSet[T]) ([]*column[T], error) {
	var out []*column[T]
	for _, name := range strings.Split(names, ",") {
		c := set.named(strings.TrimSpace(name))
		if c == nil {
			return nil, usageError("there is no column %q: use %s, or Slurm's letters as %%%c", name, set.names(), set[0].letter)
		}
		out = append(out, c)
	}
	return out, nil
}

// byLetters are columns that the program itself chooses.
func byLetters[T any](letters string, set columnSet[T]) []*column[T] {
	var out []*column[T]
	for i := range len(letters) {
		out = append(out, set.of(letters[i]))
	}
	return out
}

// gridOf fills a table. paint, for the columns that have one, gives a cell's
// colour.
func gridOf[T any](rows []T, cols []*column[T], v *view, paint map[byte]func([]byte) string) *grid {
	g := &grid{}
	for _, c := range cols {
		g.columns = append(g.columns, gridColumn{title: c.title, right: c.right, least: c.least, paint: paint[c.letter]})
	}
	for i := range rows {
		for _, c := range cols {
			g.cell(func(b []byte) []byte { return c.cell(v, b, &rows[i]) })
		}
	}
	return g
}

// put writes a cell in the field's width.
func (f *field[T]) put(out *bytes.Buffer, s string) {
	s = clean(s)
	if f.width == 0 {
		out.WriteString(s)
		return
	}
	if has := text.StringWidthWithoutEscSequences(s); has > f.width {
		s = text.Trim(s, f.width)
	}
	gap := f.width - text.StringWidthWithoutEscSequences(s)
	if f.right {
		pad(out, gap)
	}
	out.WriteString(s)
	if !f.right {
		pad(out, gap)
	}
}
