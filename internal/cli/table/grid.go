package table

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"gbatch/internal/cli/human"
)

// Grid draws a table: no borders, two blanks between columns, and no blank at
// the ends of lines. Cells are appended to one buffer, so that ten thousand rows
// cost no allocation each.
type Grid struct {
	columns  []gridColumn
	buf      []byte
	ends     []int // of each cell in buf, row by row
	widths   []int // of each cell, in terminal columns
	indent   string
	limit    int // the terminal's width; 0: nothing is ever cut
	folds    bool
	noHeader bool
	color    bool
}

// gridColumn is one column, as wide as its widest cell.
type gridColumn struct {
	title string
	right bool
	least int  // see Column
	keep  bool // see Column
	color func(cell []byte) string
}

// New is an empty grid with these titles; none: it has no header.
func New(titles ...string) *Grid {
	g := &Grid{noHeader: len(titles) == 0}
	for _, t := range titles {
		g.columns = append(g.columns, gridColumn{title: t})
	}
	return g
}

// Right aligns these columns, counted from 1, to the right.
func (g *Grid) Right(columns ...int) *Grid {
	for _, n := range columns {
		g.columns[n-1].right = true
	}
	return g
}

// NoHeader leaves the titles out where no is true.
func (g *Grid) NoHeader(no bool) *Grid {
	g.noHeader = g.noHeader || no
	return g
}

// Fit keeps the lines within the width of a terminal, 0 for any: long texts are
// cut, and if that is not enough columns are left out.
func (g *Grid) Fit(width int) *Grid {
	g.limit = width
	for i := range g.columns {
		if !g.columns[i].right {
			g.columns[i].least = longText
		}
	}
	return g
}

// longText is what Fit leaves of a text: a time is not cut, a UUID is.
const longText = 20

// Indent puts text in front of each line.
func (g *Grid) Indent(text string) *Grid {
	g.indent = text
	return g
}

// Row adds a row. A cell may have several lines.
func (g *Grid) Row(cells ...string) {
	if g.columns == nil {
		g.columns = make([]gridColumn, len(cells))
	}
	lines := make([][]string, len(cells))
	height := 0
	for i, c := range cells {
		lines[i] = strings.Split(c, "\n")
		height = max(height, len(lines[i]))
	}
	for n := range height {
		for i := range cells {
			g.cell(func(b []byte) []byte {
				if n < len(lines[i]) {
					b = append(b, lines[i][n]...)
				}
				return b
			})
		}
	}
}

// cell adds the next cell, row by row, whose text add appends. Text that is
// not printable ASCII is escaped.
func (g *Grid) cell(add func([]byte) []byte) {
	start := len(g.buf)
	g.buf = add(g.buf)
	width := len(g.buf) - start
	if raw := g.buf[start:]; !human.IsPlain(raw) {
		safe := human.Clean(string(raw))
		g.buf = append(g.buf[:start], safe...)
		width = human.Width(safe)
	}
	g.ends = append(g.ends, len(g.buf))
	g.widths = append(g.widths, width)
}

// Write draws the table.
func (g *Grid) Write(w io.Writer) error {
	var out bytes.Buffer
	if g.folds && g.limit > 0 && len(g.columns) > 0 {
		g.writeFolded(&out, g.whole())
		_, err := w.Write(out.Bytes())
		return err
	}
	widths := g.fit()
	out.Grow(len(g.buf) + len(g.ends)*4)
	if !g.noHeader {
		for i, c := range g.columns {
			g.put(&out, i, widths[i], drawn{text: []byte(c.title), width: len(c.title)})
		}
	}
	start := 0
	for n, end := range g.ends {
		i := n % len(g.columns)
		cell := drawn{text: g.buf[start:end], width: g.widths[n]}
		if g.color && g.columns[i].color != nil {
			cell.sgr = g.columns[i].color(cell.text)
		}
		g.put(&out, i, widths[i], cell)
		start = end
	}
	g.sayHidden(&out, widths)
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

// drawn is a cell as the terminal gets it.
type drawn struct {
	text  []byte
	width int    // in terminal columns
	sgr   string // the escape sequence of its color; empty: none
}

// put writes one cell of column i, and the line's end after the last one.
func (g *Grid) put(out *bytes.Buffer, i, width int, cell drawn) {
	if i == 0 {
		out.WriteString(g.indent)
	}
	if width == hidden {
		return
	}
	if cell.width > width {
		cell.text, cell.width = []byte(human.Cut(string(cell.text), width)), width
	}
	if g.columns[i].right {
		pad(out, width-cell.width)
	}
	out.WriteString(cell.sgr)
	out.Write(cell.text)
	if cell.sgr != "" {
		out.WriteString("\x1b[0m")
	}
	switch {
	case i == len(g.columns)-1:
		out.Truncate(len(bytes.TrimRight(out.Bytes(), " ")))
		out.WriteByte('\n')
	case g.columns[i].right:
		pad(out, 2)
	default:
		pad(out, width-cell.width+2)
	}
}

const hidden = -1 // the width of a column that is not drawn

// fit gives the columns' widths, taking from the widest that may be cut until
// the line fits, and then away those between the first and the last: from the right,
// and those that are to be kept after the others.
func (g *Grid) fit() []int {
	whole := g.whole()
	for spare := g.spare(); ; spare = spare[1:] {
		widths := slices.Clone(whole)
		if g.cut(widths) || len(spare) == 0 {
			return widths
		}
		whole[spare[0]] = hidden
	}
}

// spare are the columns that may be hidden, the next one first.
func (g *Grid) spare() []int {
	var spare, kept []int
	for i := len(g.columns) - 2; i > 0; i-- {
		if g.columns[i].keep {
			kept = append(kept, i)
		} else {
			spare = append(spare, i)
		}
	}
	return append(spare, kept...)
}

// whole gives the columns' widths as their widest cells want them.
func (g *Grid) whole() []int {
	whole := make([]int, len(g.columns))
	if !g.noHeader {
		for i, c := range g.columns {
			whole[i] = len(c.title)
		}
	}
	for n, w := range g.widths {
		i := n % len(g.columns)
		whole[i] = max(whole[i], w)
	}
	return whole
}

// cut narrows columns until the line fits, and says whether it does.
func (g *Grid) cut(widths []int) bool {
	total := len(g.indent) - 2
	for _, w := range widths {
		total += w + 2
		if w == hidden {
			total -= hidden + 2
		}
	}
	for g.limit > 0 && total > g.limit {
		widest := -1
		for i, c := range g.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
		total--
	}
	return true
}

// sayHidden says which columns the terminal is too narrow for.
func (g *Grid) sayHidden(out *bytes.Buffer, widths []int) {
	var titles []string
	for i, w := range widths {
		if w == hidden {
			titles = append(titles, g.columns[i].title)
		}
	}
	if len(titles) > 0 && !g.noHeader {
		out.WriteString(human.Cut(g.indent+"too narrow for "+strings.Join(titles, ", "), g.limit) + "\n")
	}
}

// Fields are names and values in two columns; empty values are left out.
type Fields struct{ Grid }

// NewFields is an empty table of fields.
func NewFields() *Fields { return &Fields{*New()} }

// Add adds a field. Its value may have several lines.
func (f *Fields) Add(name, value string) {
	if value != "" {
		f.Row(name, value)
	}
}
