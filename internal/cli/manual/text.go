package manual

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// Style is how text looks.
type Style struct {
	Width int  // columns, of which code may take more
	Color bool // bold letters for code and headings
}

// writer is a topic that becomes text.
type writer struct {
	page
	Style
	bytes.Buffer
}

// WriteText writes the topic as text.
func (t *Topic) WriteText(w io.Writer, s Style) error {
	_, err := w.Write((&writer{page: newPage(t), Style: s}).whole())
	return err
}

func (o *writer) whole() []byte {
	if t := o.topic; t.heading != "" {
		o.WriteString(o.bold(strings.ToUpper(t.Name)) + "\n\n")
	}
	for _, n := range o.blocks() {
		o.block(n, "")
	}
	return append(bytes.TrimRight(o.Bytes(), "\n"), '\n')
}

// block writes a block and an empty line, behind an indent.
func (o *writer) block(n ast.Node, indent string) {
	switch n := n.(type) {
	case *ast.Heading:
		title := plain(o.spans(n))
		if n.Level <= 2 {
			title = strings.ToUpper(title)
		}
		o.WriteString(o.bold(title) + "\n\n")
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		for i := 0; i < n.Lines().Len(); i++ {
			line := n.Lines().At(i)
			o.WriteString(strings.TrimRight(indent+"    "+string(line.Value(o.source)), " \n") + "\n")
		}
		o.WriteString("\n")
	case *ast.List:
		number := n.Start
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			mark := "- "
			if n.IsOrdered() {
				mark = strconv.Itoa(number) + ". "
				number++
			}
			before := o.Len()
			for c := item.FirstChild(); c != nil; c = c.NextSibling() {
				o.block(c, indent+strings.Repeat(" ", len(mark)))
			}
			// The mark stands in the first line's indent, and items stand close.
			text := strings.Replace(o.String()[before:], indent+strings.Repeat(" ", len(mark)), indent+mark, 1)
			o.Truncate(before)
			o.WriteString(strings.TrimRight(text, "\n") + "\n")
		}
		o.WriteString("\n")
	case *east.Table:
		o.table(n, indent)
	case *ast.ThematicBreak:
	case *ast.Blockquote:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			o.block(c, indent+"  ")
		}
	case *ast.TextBlock: // of an item that stands close to the next
		o.words(o.styled(o.spans(n)), indent)
	default:
		o.words(o.styled(o.spans(n)), indent)
		o.WriteString("\n")
	}
}

// table has columns where they fit, and else each row as an item: the first
// cell, and below it the others.
func (o *writer) table(n *east.Table, indent string) {
	var rows [][]string
	var width []int
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := strings.Join(o.styled(o.spans(c)), " ")
			if len(row) == len(width) {
				width = append(width, 0)
			}
			width[len(row)] = max(width[len(row)], visible(cell))
			row = append(row, cell)
		}
		if strings.Join(row, "") != "" { // some have no heads
			rows = append(rows, row)
		}
	}
	sum := len(indent)
	for _, w := range width {
		sum += w + 2
	}
	for i, row := range rows {
		if sum-2 <= o.Width {
			line := indent
			for j, cell := range row {
				line += cell + strings.Repeat(" ", width[j]+2-visible(cell))
			}
			o.WriteString(strings.TrimRight(line, " ") + "\n")
			continue
		}
		if i == 0 { // heads, with nothing below them
			continue
		}
		o.words(strings.Fields(row[0]), indent)
		rest := strings.Join(cells(row[1:]), "; ")
		o.words(strings.Fields(rest), indent+"    ")
	}
	o.WriteString("\n")
}

// cells are those that have something.
func cells(row []string) []string {
	var out []string
	for _, c := range row {
		if strings.TrimSpace(c) != "" {
			out = append(out, c)
		}
	}
	return out
}

// words writes lines that are no longer than the width.
func (o *writer) words(list []string, indent string) {
	line := indent
	for _, w := range list {
		if line != indent && visible(line)+1+visible(w) > o.Width {
			o.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += w
	}
	if line != indent {
		o.WriteString(line + "\n")
	}
}

// styled are the words of spans. What is code keeps its marks where there are no
// other letters for it.
func (o *writer) styled(list []span) []string {
	var b strings.Builder
	for _, s := range list {
		switch {
		case s.kind == code && !o.Color:
			b.WriteString("`" + s.text + "`")
		case s.kind == code || s.kind == strong:
			for i, w := range strings.Split(s.text, " ") {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(o.bold(w))
			}
		default:
			b.WriteString(s.text)
		}
	}
	return strings.Fields(b.String())
}

const boldOn, boldOff = "\x1b[1m", "\x1b[0m"

func (o *writer) bold(s string) string {
	if !o.Color || s == "" {
		return s
	}
	return boldOn + s + boldOff
}

// visible is how many columns a text takes.
func visible(s string) int {
	return utf8.RuneCountInString(s) - strings.Count(s, boldOn)*len(boldOn) - strings.Count(s, boldOff)*len(boldOff)
}
