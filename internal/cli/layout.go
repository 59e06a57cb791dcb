package cli

import "strings"

// layout is how things are listed: by a format of Slurm's, or as a table with
// columns.
type layout[T any] struct {
	fields  []field[T]
	columns []*column[T]
}

// parseLayout reads what -o takes: a format with percent signs, or names of
// columns with commas between them.
func parseLayout[T any](text string, set columnSet[T]) (l layout[T], err error) {
	if strings.Contains(text, "%") {
		l.fields, err = parseFormat(text, set)
		return l, err
	}
	l.columns, err = namedColumns(text, set)
	return l, err
}

// needs says whether one of these columns is shown.
func (l layout[T]) needs(letters ...byte) bool {
	has := func(c *column[T]) bool { return c != nil && strings.IndexByte(string(letters), c.letter) >= 0 }
	for _, f := range l.fields {
		if has(f.col) {
			return true
		}
	}
	for _, c := range l.columns {
		if has(c) {
			return true
		}
	}
	return false
}

// write lists rows. paint is of the columns of a table that have colours.
func (l layout[T]) write(a *App, rows []T, v *view, header bool, paint map[byte]func([]byte) string) error {
	if l.fields != nil {
		v.relative = false // Slurm's letters have Slurm's times
		return writeFormat(a.Out, l.fields, rows, v, header)
	}
	return gridOf(rows, l.columns, v, paint).write(a.Out, a.Term.Width, header, a.Term.Color)
}
