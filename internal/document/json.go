package document

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonReader reads a JSON text. encoding/json forgets the order of keys, keeps
// the last of two equal ones and has no places, so documents have their own
// small reader; it accepts exactly RFC 8259, in valid UTF-8.
type jsonReader struct {
	src    string
	pos    int
	strict bool // the document must be JSON
	depth  int
	values int

	counted, line int    // bytes whose line ends were counted, and the line that they end on
	spare         []Node // allocated together, since most documents are small
}

// syntaxError is where and why a text is not JSON.
type syntaxError struct {
	off  int
	text string
	hint string
}

// document reads the one value of the text.
func (r *jsonReader) document(want string) (*Node, *syntaxError) {
	n := r.node(nil)
	if err := r.value(n, want); err != nil {
		return nil, err
	}
	return n, nil
}

func (r *jsonReader) atEnd() bool {
	r.skip()
	return r.pos == len(r.src)
}

func (r *jsonReader) node(up *Node) *Node {
	if len(r.spare) == 0 {
		r.spare = make([]Node, 15) // as many as fit in 1.5 KiB, which is a size that memory is given out in
	}
	n := &r.spare[0]
	r.spare = r.spare[1:]
	n.Up = up
	return n
}

// lineAt is the line of a byte offset. Offsets are asked for in ascending order.
func (r *jsonReader) lineAt(off int) int {
	if off > r.counted {
		r.line += strings.Count(r.src[r.counted:off], "\n")
		r.counted = off
	}
	return r.line
}

func (r *jsonReader) skip() {
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// next skips blanks and returns the byte there, 0 at the end.
func (r *jsonReader) next() byte {
	r.skip()
	if r.pos == len(r.src) {
		return 0
	}
	return r.src[r.pos]
}

func (r *jsonReader) value(n *Node, want string) *syntaxError {
	c := r.next()
	if r.strict {
		n.off = int32(r.pos)
	}
	if n.Line == 0 {
		n.Line = int32(r.lineAt(r.pos))
	}
	if r.values++; r.values > maxValues {
		return &syntaxError{off: r.pos, text: fmt.Sprintf("has more than %d values", maxValues)}
	}
	switch {
	case c == '{':
		return r.members(n)
	case c == '[':
		return r.elements(n)
	case c == '"':
		n.Kind = StringKind
		return r.str(&n.Text)
	case c == '-' || '0' <= c && c <= '9':
		n.Kind = NumberKind
		return r.number(&n.Text)
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(r.src[r.pos:], word) && !IsNameByte(r.at(r.pos+len(word))) {
			r.pos += len(word)
			if n.Text = word; word != "null" {
				n.Kind = BoolKind
			}
			return nil
		}
	}
	return r.unexpected(want)
}

// at is the byte at i, 0 behind the end.
func (r *jsonReader) at(i int) byte {
	if i >= len(r.src) {
		return 0
	}
	return r.src[i]
}

func (r *jsonReader) members(n *Node) *syntaxError {
	n.Kind = ObjectKind
	return r.list(n, '}', func(kid *Node) *syntaxError {
		if r.next() != '"' {
			return r.unexpected(`a key in "double quotes"`)
		}
		kid.Line = int32(r.lineAt(r.pos))
		if err := r.str(&kid.Key); err != nil {
			return err
		}
		if r.next() != ':' {
			return r.unexpected("a colon after the key")
		}
		r.pos++
		return r.value(kid, "a value")
	})
}

func (r *jsonReader) elements(n *Node) *syntaxError {
	n.Kind = ArrayKind
	return r.list(n, ']', func(kid *Node) *syntaxError {
		return r.value(kid, "a value")
	})
}

// list reads the comma-separated kids of n, from its bracket to end.
func (r *jsonReader) list(n *Node, end byte, one func(*Node) *syntaxError) *syntaxError {
	switch r.depth++; {
	case r.strict && r.depth > maxLevelsStrict:
		return &syntaxError{off: r.pos, text: fmt.Sprintf("is nested more than %d levels deep", maxLevelsStrict)}
	case r.depth > maxLevels:
		return &syntaxError{off: r.pos, text: fmt.Sprintf("it has more than %d levels", maxLevels)}
	}
	r.pos++
	for first := true; ; first = false {
		switch c := r.next(); {
		case c == end:
			r.pos++
			r.depth--
			return nil
		case first:
		case c != ',':
			return r.unexpected(fmt.Sprintf("a comma or %q", end))
		default:
			comma := r.pos
			r.pos++
			if r.next() == end {
				return &syntaxError{off: comma, text: fmt.Sprintf("expected no comma before %q", end), hint: "remove the comma after the last entry"}
			}
		}
		kid := r.node(n)
		kid.Index = int32(len(n.Kids))
		n.Kids = append(n.Kids, kid)
		if err := one(kid); err != nil {
			return err
		}
	}
}

// number reads [-] digits [. digits] [e digits] without leading zeros.
func (r *jsonReader) number(text *string) *syntaxError {
	start := r.pos
	if r.at(r.pos) == '-' {
		r.pos++
	}
	whole := r.digits()
	ok := whole == 1 || whole > 1 && r.src[r.pos-whole] != '0'
	if ok && r.at(r.pos) == '.' {
		r.pos++
		ok = r.digits() > 0
	}
	if c := r.at(r.pos); ok && (c == 'e' || c == 'E') {
		r.pos++
		if s := r.at(r.pos); s == '+' || s == '-' {
			r.pos++
		}
		ok = r.digits() > 0
	}
	if !ok || IsNameByte(r.at(r.pos)) {
		return &syntaxError{off: start, text: "expected a number as 12, -1 or 0.5", hint: "text goes in \"double quotes\""}
	}
	*text = r.src[start:r.pos]
	return nil
}

func (r *jsonReader) digits() (n int) {
	for ; isDigit(r.at(r.pos)); r.pos++ {
		n++
	}
	return n
}

// unexpected says what was wanted where the reader stands, and what is there.
func (r *jsonReader) unexpected(want string) *syntaxError {
	rest := r.src[r.pos:]
	e := &syntaxError{off: r.pos}
	found := "the end of the file"
	if rest != "" {
		c, _ := utf8.DecodeRuneInString(rest)
		found = fmt.Sprintf("%q", string(c))
		switch {
		case c == '\'' || c == '\u201c' || c == '\u201d':
			e.hint = `use plain double quotes: "`
		case c == '#' || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*"):
			e.hint = "JSON has no comments: remove it, or put the text in \"description\""
		case strings.HasPrefix(rest, "True") || strings.HasPrefix(rest, "False") || strings.HasPrefix(rest, "None"):
			e.hint = "write true, false or null"
		case strings.HasPrefix(rest, "..."):
			e.hint = "replace the dots by the real content"
		}
	}
	e.text = fmt.Sprintf("expected %s, found %s", want, found)
	return e
}
