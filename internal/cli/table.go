package cli

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable is a table in the suite's style: no borders, two blanks between
// columns, no blank at the ends of lines.
func newTable(header ...string) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	if len(header) > 0 {
		t.AppendHeader(toRow(header))
	}
	return t
}

// toRow escapes the cells. A cell may have several lines.
func toRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = cleanLines(c)
	}
	return row
}

// alignRight sets these columns, counted from 1, flush right.
func alignRight(t table.Writer, columns ...int) {
	var configs []table.ColumnConfig
	for _, n := range columns {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
}

// render writes a table, indented.
func render(w io.Writer, t table.Writer, indent string) error {
	text := t.Render()
	if indent != "" {
		text = indent + strings.ReplaceAll(text, "\n", "\n"+indent)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// fields prints names and values in two columns; empty values are left out.
type fields struct{ t table.Writer }

func newFields() *fields { return &fields{newTable()} }

func (f *fields) add(name, value string) {
	if value != "" {
		f.t.AppendRow(toRow([]string{name, value}))
	}
}
