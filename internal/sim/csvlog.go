package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// table reads a CSV file with a header. Columns are found by name, in any
// order; names that the caller does not know are an error, since a log with
// other columns is another log.
type table struct {
	in      *csv.Reader
	columns map[string]int
	row     []string
	line    int
}

// openTable reads the header. Columns that may be absent are optional.
func openTable(r io.Reader, needed, optional []string) (*table, error) {
	t := &table{in: csv.NewReader(r), columns: map[string]int{}}
	t.in.ReuseRecord = true
	head, err := t.in.Read()
	if errors.Is(err, io.EOF) {
		return nil, lineError(1, "the file is empty: want a header with the columns %s", strings.Join(needed, ", "))
	}
	if err != nil {
		return nil, lineError(1, "%w", err)
	}
	for i, name := range head {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		switch {
		case !slices.Contains(needed, name) && !slices.Contains(optional, name):
			return nil, lineError(1, "unknown column %q: want %s and perhaps %s", name, strings.Join(needed, ", "), strings.Join(optional, ", "))
		case t.has(name):
			return nil, lineError(1, "column %q is there twice", name)
		}
		t.columns[name] = i
	}
	for _, name := range needed {
		if !t.has(name) {
			return nil, lineError(1, "column %q is missing", name)
		}
	}
	return t, nil
}

func (t *table) has(name string) bool { _, ok := t.columns[name]; return ok }

// next reads a row; false at the end.
func (t *table) next() (bool, error) {
	row, err := t.in.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return false, lineError(bad.Line, "%w", bad.Err)
	}
	if err != nil {
		return false, lineError(t.line+1, "read: %w", err)
	}
	t.row = row
	t.line, _ = t.in.FieldPos(0)
	return true, nil
}

// text is a field, "" where its column is absent.
func (t *table) text(name string) string {
	i, ok := t.columns[name]
	if !ok {
		return ""
	}
	return t.row[i]
}

// number is a whole number of 0 or more.
func (t *table) number(name string) (int64, error) {
	n, err := strconv.ParseInt(t.text(name), 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, t.errorf("%s is %q: want a whole number of 0 or more", name, t.text(name))
	}
	return n, nil
}

func (t *table) errorf(format string, args ...any) error {
	return lineError(t.line, "%s", fmt.Sprintf(format, args...))
}
