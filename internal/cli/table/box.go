package table

import (
	"io"
	"strings"

	"gbatch/internal/cli/human"
)

// Box draws a table with lines around all cells. Its columns are at least as
// wide as widths says; those from center on, counted from 0, are centred.
func Box(w io.Writer, rows [][]string, widths []int, center int) error {
	for r := range rows {
		for i, c := range rows[r] {
			rows[r][i] = human.Clean(c)
			widths[i] = max(widths[i], human.Width(rows[r][i]))
		}
	}
	rule := "+"
	for _, n := range widths {
		rule += strings.Repeat("-", n+2) + "+"
	}
	var b strings.Builder
	b.WriteString(rule + "\n")
	for r, row := range rows {
		for i, c := range row {
			gap := widths[i] - human.Width(c)
			before := 0
			if r > 0 && i >= center {
				before = gap - gap/2
			}
			b.WriteString("| " + strings.Repeat(" ", before) + c + strings.Repeat(" ", gap-before) + " ")
		}
		b.WriteString("|\n")
		if r == 0 {
			b.WriteString(rule + "\n")
		}
	}
	if len(rows) > 1 {
		b.WriteString(rule + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
