package manual

import (
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"

	"gbatch"
)

// span is text in one kind of letters.
type span struct {
	text string
	kind kind
}

type kind int

const (
	normal kind = iota
	code
	strong
	emphasis
)

// spans are the words of a block, without line breaks.
func (p *page) spans(n ast.Node) []span { return p.within(n, normal) }

func (p *page) within(n ast.Node, k kind) []span {
	var out []span
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			s := string(c.Segment.Value(p.source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				s += " "
			}
			out = append(out, span{unescape(s), k})
		case *ast.String:
			out = append(out, span{string(c.Value), k})
		case *ast.CodeSpan:
			var b strings.Builder
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					b.Write(t.Segment.Value(p.source))
				}
			}
			// In a table's cell, \| is the mark that does not end it.
			out = append(out, span{strings.ReplaceAll(strings.ReplaceAll(b.String(), "\n", " "), `\|`, "|"), code})
		case *ast.Emphasis:
			inner := strong
			if c.Level == 1 {
				inner = emphasis
			}
			out = append(out, p.within(c, inner)...)
		case *ast.Link:
			out = append(out, p.within(c, k)...)
			if to := p.target(string(c.Destination), plain(p.within(c, k))); to != "" {
				out = append(out, span{" (" + to + ")", normal})
			}
		case *ast.AutoLink:
			out = append(out, span{string(c.URL(p.source)), k})
		case *ast.RawHTML:
		default:
			out = append(out, p.within(c, k)...)
		}
	}
	return out
}

// unescape takes the backslashes away by which marks are meant as themselves.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\`*_{}[]<>()#+-.!|~", s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// target says where a link leads, for who cannot follow it; empty where that is
// nowhere else, or is said by the link's words.
func (p *page) target(to, words string) string {
	file, _, _ := strings.Cut(to, "#")
	if strings.Contains(to, "://") {
		return to
	}
	file = path.Join(path.Dir(p.topic.file), file)
	if file == path.Dir(p.topic.file) || file == p.topic.file {
		return ""
	}
	if _, err := gbatch.Documents.Open(file); err != nil {
		return ""
	}
	return "gadm help " + topicName(file)
}

// plain is the text of spans.
func plain(list []span) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.text)
	}
	return b.String()
}
