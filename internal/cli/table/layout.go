package table

import (
	"io"
	"slices"
	"strings"
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
		g.columns = append(g.columns, gridColumn{title: c.Title, right: c.Right, least: c.Least, color: c.Color})
	}
	for i := range rows {
		for _, c := range l.columns {
			g.cell(func(b []byte) []byte { return c.Cell(&v, b, &rows[i]) })
		}
	}
	return g.Write(w)
}
