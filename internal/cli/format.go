package cli

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"gbatch/internal/api"
)

// field is one part of a -o format: a column, or text as it is.
type field struct {
	literal string
	col     *column
	width   int  // exactly so wide, cutting if need be; 0: as wide as the cell
	right   bool // aligned
}

// maxFieldWidth bounds the width of one field.
const maxFieldWidth = 1000

// parseFormat reads Slurm's format: %[[.]width]letter and text between. A dot
// aligns right. %% is a percent sign.
func parseFormat(format string) ([]field, error) {
	var out []field
	for rest := format; rest != ""; {
		at := strings.IndexByte(rest, '%')
		if at != 0 {
			if at < 0 {
				at = len(rest)
			}
			out = append(out, field{literal: rest[:at]})
			rest = rest[at:]
			continue
		}
		rest = rest[1:]
		f := field{}
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
			return nil, usageError("format %q ends after a percent sign: a letter must follow, one of %s", format, letters())
		}
		if rest[0] == '%' && digits == 0 && !f.right {
			out, rest = append(out, field{literal: "%"}), rest[1:]
			continue
		}
		if f.col = columnOf(rest[0]); f.col == nil {
			return nil, usageError("format %q: no column has the letter %q; there are %s", format, rest[:1], letters())
		}
		out, rest = append(out, f), rest[1:]
	}
	return out, nil
}

// writeFormat prints jobs by a format, one line each.
func writeFormat(w io.Writer, fields []field, jobs []api.Job, v *view, header bool) error {
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
	for i := range jobs {
		for _, f := range fields {
			if f.col == nil {
				out.WriteString(f.literal)
				continue
			}
			cell = f.col.cell(v, cell[:0], &jobs[i])
			f.put(&out, string(cell))
		}
		out.WriteByte('\n')
	}
	_, err := w.Write(out.Bytes())
	return err
}

// put writes a cell in the field's width.
func (f *field) put(out *bytes.Buffer, s string) {
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
