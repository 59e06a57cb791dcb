package cli

import (
	"bytes"
	"io"

	"github.com/jedib0t/go-pretty/v6/text"
)

// grid is the fast table behind gqueue's lists: cells are appended to one
// buffer, so that ten thousand rows cost no allocation each. The other tables
// are small and drawn by go-pretty.
type grid struct {
	columns []gridColumn
	buf     []byte
	ends    []int // of each cell in buf, row by row
	widths  []int // of each cell, in terminal columns
}

// gridColumn is one column. Widths of 0 mean as wide as its widest cell.
type gridColumn struct {
	title string
	right bool
	least int // may be cut down to this on a narrow terminal; 0: never cut
	paint func(cell []byte) string
}

// cell adds the next cell, row by row, whose text add appends. Text that is
// not printable ASCII is escaped.
func (g *grid) cell(add func([]byte) []byte) {
	start := len(g.buf)
	g.buf = add(g.buf)
	width := len(g.buf) - start
	if raw := g.buf[start:]; !isPlain(raw) {
		safe := clean(string(raw))
		g.buf = append(g.buf[:start], safe...)
		width = text.StringWidthWithoutEscSequences(safe)
	}
	g.ends = append(g.ends, len(g.buf))
	g.widths = append(g.widths, width)
}

// write draws the table. limit is the terminal's width, 0 for none: then
// nothing is ever cut.
func (g *grid) write(w io.Writer, limit int, header, color bool) error {
	widths := g.fit(limit, header)
	var out bytes.Buffer
	out.Grow(len(g.buf) + len(g.ends)*4)
	if header {
		for i, c := range g.columns {
			g.put(&out, i, widths[i], []byte(c.title), len(c.title), "")
		}
	}
	start := 0
	for n, end := range g.ends {
		i := n % len(g.columns)
		cell := g.buf[start:end]
		sgr := ""
		if color && g.columns[i].paint != nil {
			sgr = g.columns[i].paint(cell)
		}
		g.put(&out, i, widths[i], cell, g.widths[n], sgr)
		start = end
	}
	_, err := w.Write(out.Bytes())
	return err
}

const blanks = "                                                                "

func pad(out *bytes.Buffer, n int) {
	for ; n > len(blanks); n -= len(blanks) {
		out.WriteString(blanks)
	}
	if n > 0 {
		out.WriteString(blanks[:n])
	}
}

// put writes one cell of column i, and the line's end after the last one.
func (g *grid) put(out *bytes.Buffer, i, width int, cell []byte, has int, sgr string) {
	last := i == len(g.columns)-1
	if has > width {
		cell, has = []byte(cut(string(cell), width)), width
	}
	if g.columns[i].right {
		pad(out, width-has)
	}
	out.WriteString(sgr)
	out.Write(cell)
	if sgr != "" {
		out.WriteString(colorOff)
	}
	switch {
	case last:
		out.WriteByte('\n')
	case g.columns[i].right:
		pad(out, 2)
	default:
		pad(out, width-has+2)
	}
}

// fit gives the columns' widths, taking from the widest that may be cut until
// the line fits.
func (g *grid) fit(limit int, header bool) []int {
	widths := make([]int, len(g.columns))
	total := 2 * (len(g.columns) - 1)
	if header {
		for i, c := range g.columns {
			widths[i] = len(c.title)
		}
	}
	for n, w := range g.widths {
		i := n % len(g.columns)
		widths[i] = max(widths[i], w)
	}
	for _, w := range widths {
		total += w
	}
	for limit > 0 && total > limit {
		widest := -1
		for i, c := range g.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // the terminal has to wrap the line
		}
		widths[widest]--
		total--
	}
	return widths
}

// cut shortens s to width terminal columns, with a mark that it did.
func cut(s string, width int) string {
	if text.StringWidthWithoutEscSequences(s) <= width {
		return s
	}
	return text.Trim(s, max(width-1, 0)) + "…"
}
