package table

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"gbatch/internal/cli/exit"
)

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
