// Package table lists things in columns: jobs, nodes, and what was used. A
// Column owns all that is known of it: its name, its title, its letter in
// Slurm's formats, its cells, their order and their colour. So a new column is
// one entry in the Set of its kind of row, which the packages above hold.
//
// All tables of the commands are drawn here, by one Grid. The package asks no
// controller and reads no clock or terminal: a View says what there is. Text
// from elsewhere is shown with its control characters escaped.
package table

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
)

// Column is one thing that can be said of a row of type T.
type Column[T any] struct {
	Key     string // its name for -o and -S; empty: its title in small letters
	Also    string // other systems' names for it, separated by blanks
	Letters string // in formats; Slurm's where Slurm has the column, and else none
	Title   string
	Right   bool // aligned
	Least   int  // it may be cut down to this on a narrow terminal; 0: never cut
	Keep    bool // a narrow terminal loses it after the others
	Asked   bool // the controller tells its cells only when it is asked for them

	Cell  func(v *View, b []byte, x *T) []byte // appends the cell to b
	Order func(v *View, x *T) int64            // what rows are ordered by; nil: the text of the cell
	Color func(cell []byte) string             // the SGR code that a cell has on a terminal; nil: none
}

// View says how rows are looked at.
type View struct {
	Now      time.Time
	Relative bool   // "in 5m" for times
	Text     bool   // reasons as sentences
	As       string // whose words for states; empty: ours
	Width    int    // of the terminal; 0: nothing is cut
	Color    bool
	NoHeader bool
	Unit     byte // of memory in Slurm's words: K, M, G, T or P; 0: the one that fits

	Times func(time.Time) string // how they are written; nil: as in ISO 8601
}

// Name is what the user calls the column.
func (c *Column[T]) Name() string {
	if c.Key != "" {
		return c.Key
	}
	return strings.ToLower(c.Title)
}

// names are all that the user may call it.
func (c *Column[T]) names() []string { return append(strings.Fields(c.Also), c.Name()) }

// Set is all that can be said of one kind of row.
type Set[T any] []Column[T]

// Named finds a column by one of its names in any case, or by a letter; nil if
// there is none.
func (set Set[T]) Named(name string) *Column[T] {
	if c := set.long(name); c != nil {
		return c
	}
	if len(name) == 1 {
		return set.letter(name[0])
	}
	return nil
}

func (set Set[T]) letter(l byte) *Column[T] {
	for i := range set {
		if strings.IndexByte(set[i].Letters, l) >= 0 {
			return &set[i]
		}
	}
	return nil
}

// Known lists the names of all columns, for messages.
func (set Set[T]) Known() string {
	var out []string
	for i := range set {
		out = append(out, set[i].Name())
	}
	return strings.Join(out, ", ")
}

// letters lists the letters, for messages.
func (set Set[T]) letters() string {
	var out []string
	for _, c := range set {
		for _, l := range c.Letters {
			out = append(out, string(l)+" "+strings.ToLower(c.Title))
		}
	}
	return strings.Join(out, ", ")
}

// choose finds the columns of a list of names with commas between them.
func (set Set[T]) choose(names string) ([]*Column[T], error) {
	var out []*Column[T]
	for name := range strings.SplitSeq(names, ",") {
		c := set.Named(strings.TrimSpace(name))
		if c == nil {
			return nil, exit.Usagef("there is no column %q: use %s, or Slurm's letters as %%%s", name, set.Known(), set[0].Letters)
		}
		out = append(out, c)
	}
	return out, nil
}

// Lift is a column of rows that have a row of another kind in them. Its name and
// other names are its own.
func Lift[T, U any](c *Column[T], key, also string, of func(*U) *T) Column[U] {
	return Column[U]{Key: key, Also: also, Title: c.Title, Right: c.Right, Least: c.Least, Color: c.Color,
		Cell: func(v *View, b []byte, x *U) []byte { return c.Cell(v, b, of(x)) }}
}

// Moment writes a time, or a dash where there is none.
func (v *View) Moment(b []byte, t time.Time) []byte {
	switch {
	case t.IsZero():
		return append(b, '-')
	case v.Relative:
		return append(b, human.Ago(t, v.Now)...)
	case v.Times != nil:
		return append(b, v.Times(t)...)
	}
	return t.Local().AppendFormat(b, human.ISO)
}

// Order is an order of rows, the first column the most important.
type Order[T any] []orderColumn[T]

type orderColumn[T any] struct {
	*Column[T]
	down bool
}

// Order reads what --sort takes: columns with commas between them, and a minus
// before those that go down.
func (set Set[T]) Order(text string) (Order[T], error) {
	var out Order[T]
	for part := range strings.SplitSeq(text, ",") {
		name, down := strings.CutPrefix(strings.TrimSpace(part), "-")
		c := set.Named(strings.TrimPrefix(name, "+"))
		if c == nil {
			return nil, exit.Usagef("--sort: there is no column %q: use %s, with a minus for the largest first", name, set.Known())
		}
		out = append(out, orderColumn[T]{c, down})
	}
	return out, nil
}

// Asked says whether it needs a column that the controller must be asked for.
func (o Order[T]) Asked() bool {
	return slices.ContainsFunc(o, func(c orderColumn[T]) bool { return c.Asked })
}

// Sort orders rows; those that are equal stay as they are.
func (o Order[T]) Sort(rows []T, v View) {
	slices.SortStableFunc(rows, func(x, y T) int {
		for _, c := range o {
			n := c.compare(&v, &x, &y)
			if c.down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
}

func (c *Column[T]) compare(v *View, x, y *T) int {
	if c.Order != nil {
		return cmp.Compare(c.Order(v, x), c.Order(v, y))
	}
	return bytes.Compare(c.Cell(v, nil, x), c.Cell(v, nil, y))
}
