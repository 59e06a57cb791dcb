package manual

import (
	"io"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"gbatch/internal/cli/manpage"
)

// roff is a topic that becomes a man page.
type roff struct {
	page
	manpage.Roff
}

// WriteMan writes the topic as a man page.
func (t *Topic) WriteMan(w io.Writer, version string) error {
	o := &roff{page: newPage(t)}
	name, section, see := t.page, 5, t.see
	if name == "" { // about no file
		name, section, see = "gbatch-"+t.Name, 7, []string{"gadm(1)"}
	}
	o.Title(name, section, version, strings.ToLower(t.About[:1])+t.About[1:])
	o.Line(".SH DESCRIPTION")
	for _, n := range o.blocks() {
		o.block(n)
	}
	o.SeeAlso(see)
	_, err := w.Write(o.Bytes())
	return err
}

func (o *roff) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		title := strings.ReplaceAll(plain(o.spans(n)), `"`, "'")
		switch n.Level {
		case 1: // the page's name says it
		case 2:
			o.Line(`.SH "%s"`, manpage.Text(strings.ToUpper(title)))
		default:
			o.Line(`.SS "%s"`, manpage.Text(title))
		}
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		o.Line(".PP\n.RS 4\n.nf")
		for i := 0; i < n.Lines().Len(); i++ {
			line := n.Lines().At(i)
			o.Line("%s", manpage.Text(strings.TrimRight(string(line.Value(o.source)), "\n")))
		}
		o.Line(".fi\n.RE")
	case *ast.List:
		number := n.Start
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			mark := `\(bu`
			if n.IsOrdered() {
				mark = strconv.Itoa(number) + "."
				number++
			}
			o.Line(".IP %s 3", mark)
			for c := item.FirstChild(); c != nil; c = c.NextSibling() {
				if c.PreviousSibling() != nil {
					o.Line(".RS 3")
					o.block(c)
					o.Line(".RE")
					continue
				}
				o.Line("%s", o.text(c))
			}
		}
	case *east.Table:
		o.table(n)
	case *ast.ThematicBreak:
	case *ast.Blockquote:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			o.block(c)
		}
	default:
		o.Line(".PP\n%s", o.text(n))
	}
}

// table has each row as an item, by its first cell.
func (o *roff) table(n *east.Table) {
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		if _, ok := r.(*east.TableHeader); ok {
			continue
		}
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, o.text(c))
		}
		o.Line(".TP\n%s\n%s", row[0], strings.Join(cells(row[1:]), "; "))
	}
	o.Line(".PP")
}

// text is one line of the page.
func (o *roff) text(n ast.Node) string {
	var b strings.Builder
	for _, s := range o.spans(n) {
		t := strings.TrimPrefix(manpage.Text(s.text), `\&`)
		switch s.kind {
		case code, strong:
			t = `\fB` + t + `\fR`
		case emphasis:
			t = `\fI` + t + `\fR`
		}
		b.WriteString(t)
	}
	line := strings.TrimSpace(b.String())
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
