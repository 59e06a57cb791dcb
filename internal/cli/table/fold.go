package table

import (
	"bytes"

	"gbatch/internal/cli/human"
)

// Fold keeps the lines within the width of a terminal, 0 for any, without leaving
// anything out: the last column goes on in further lines, or stands below the others
// where little room would be left beside them.
func (g *Grid) Fold(width int) *Grid {
	g.limit, g.folds = width, true
	return g
}

// below is how far the last column is indented where it stands below the others.
const below = 4

// folded is where the parts of a line stand.
type folded struct {
	widths []int // of the columns
	room   int   // for the last column
	margin int   // where its further lines begin
	under  bool  // all of its lines are further ones
}

func (g *Grid) foldedAt(widths []int) folded {
	margin := len(g.indent)
	for _, w := range widths[:len(widths)-1] {
		margin += w + 2
	}
	if room := g.limit - margin; room >= longText {
		return folded{widths: widths, room: room, margin: margin}
	}
	margin = len(g.indent) + below
	return folded{widths: widths, room: max(g.limit-margin, 1), margin: margin, under: true}
}

// writeFolded draws the table with its last column folded.
func (g *Grid) writeFolded(out *bytes.Buffer, widths []int) {
	at := g.foldedAt(widths)
	row := make([]drawn, len(g.columns))
	if !g.noHeader {
		for i, c := range g.columns {
			row[i] = drawn{text: []byte(c.title), width: len(c.title)}
		}
		g.putFolded(out, at, row)
	}
	start := 0
	for n, end := range g.ends {
		i := n % len(row)
		row[i] = drawn{text: g.buf[start:end], width: g.widths[n]}
		if start = end; i == len(row)-1 {
			g.putFolded(out, at, row)
		}
	}
}

// putFolded draws a row.
func (g *Grid) putFolded(out *bytes.Buffer, at folded, row []drawn) {
	last, begin := len(row)-1, out.Len()
	for i, cell := range row[:last] {
		g.put(out, i, at.widths[i], cell)
	}
	lines := human.Wrap(string(row[last].text), at.room)
	if !at.under && len(lines) > 0 {
		out.WriteString(lines[0])
		lines = lines[1:]
	}
	out.Truncate(begin + len(bytes.TrimRight(out.Bytes()[begin:], " ")))
	if out.Len() > begin || !at.under {
		out.WriteByte('\n')
	}
	for _, line := range lines {
		pad(out, at.margin)
		out.WriteString(line)
		out.WriteByte('\n')
	}
}
