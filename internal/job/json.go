package job

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The syntax tree of a JSON text. encoding/json forgets the order of keys,
// keeps the last of two equal ones and has no positions, so the job file has
// its own small reader; it accepts exactly RFC 8259, in valid UTF-8.

// Bounds of a document, so that no input costs more than a few megabytes.
const (
	MaxDocumentBytes = 1 << 20
	maxValues        = 200_000
	maxDepth         = 32
)

type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

var kindNames = [...]string{"null", "a truth value", "a number", "a string", "an array", "an object"}

// node is one value. Its texts may share memory with the whole document;
// whoever keeps one clones it, since the document may hold a password.
type node struct {
	kind   kind
	off    int    // byte offset of the value
	keyOff int    // byte offset of its key, in an object
	key    string // in an object
	text   string // a string decoded, a number as written, "true" or "false"
	kids   []node // of an array or object, in document order
}

// child returns the first member called key, or nil.
func (n *node) child(key string) *node {
	for i := range n.kids {
		if n.kids[i].key == key {
			return &n.kids[i]
		}
	}
	return nil
}

// syntaxError is where and why a text is not JSON.
type syntaxError struct {
	off  int
	text string
	hint string
}

func (e *syntaxError) Error() string { return e.text }

type jsonReader struct {
	src    string
	pos    int
	depth  int
	values int
}

// readJSON reads src, which must be one JSON value in valid UTF-8.
func readJSON(src string) (*node, *syntaxError) {
	r := &jsonReader{src: src}
	n := &node{}
	if err := r.value(n, "a JSON object"); err != nil {
		return nil, err
	}
	if r.skip(); r.pos < len(src) {
		return nil, r.unexpected("the end of the file")
	}
	return n, nil
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

func (r *jsonReader) value(n *node, want string) *syntaxError {
	c := r.next()
	n.off = r.pos
	if r.values++; r.values > maxValues {
		return &syntaxError{off: r.pos, text: fmt.Sprintf("has more than %d values", maxValues)}
	}
	switch {
	case c == '{':
		return r.members(n)
	case c == '[':
		return r.elements(n)
	case c == '"':
		n.kind = stringKind
		return r.str(&n.text)
	case c == '-' || '0' <= c && c <= '9':
		n.kind = numberKind
		return r.number(&n.text)
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(r.src[r.pos:], word) && !isNameByte(r.at(r.pos+len(word))) {
			r.pos += len(word)
			if n.text = word; word != "null" {
				n.kind = boolKind
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

func (r *jsonReader) members(n *node) *syntaxError {
	n.kind = objectKind
	return r.list(n, '}', func(kid *node) *syntaxError {
		if r.next() != '"' {
			return r.unexpected(`a key in "double quotes"`)
		}
		kid.keyOff = r.pos
		if err := r.str(&kid.key); err != nil {
			return err
		}
		if r.next() != ':' {
			return r.unexpected("a colon after the key")
		}
		r.pos++
		return r.value(kid, "a value")
	})
}

func (r *jsonReader) elements(n *node) *syntaxError {
	n.kind = arrayKind
	return r.list(n, ']', func(kid *node) *syntaxError {
		return r.value(kid, "a value")
	})
}

// list reads the comma-separated kids of n, from its bracket to end.
func (r *jsonReader) list(n *node, end byte, one func(*node) *syntaxError) *syntaxError {
	if r.depth++; r.depth > maxDepth {
		return &syntaxError{off: r.pos, text: fmt.Sprintf("is nested more than %d levels deep", maxDepth)}
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
		n.kids = append(n.kids, node{})
		if err := one(&n.kids[len(n.kids)-1]); err != nil {
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
	if !ok || isNameByte(r.at(r.pos)) {
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

// str reads a string from its opening quote.
func (r *jsonReader) str(text *string) *syntaxError {
	start := r.pos
	r.pos++
	for plain := true; ; r.pos++ {
		switch c := r.at(r.pos); {
		case r.pos >= len(r.src): // beyond, after a backslash
			return &syntaxError{off: start, text: "expected a closing double quote for the string that starts here, found the end of the file"}
		case c == '"':
			*text = r.src[start+1 : r.pos]
			r.pos++
			if plain {
				return nil
			}
			return unescape(text, start+1)
		case c == '\\':
			plain = false
			r.pos++
		case c < ' ':
			return &syntaxError{off: r.pos, text: "expected a closing double quote, found a line break or control character in a string",
				hint: `write a line break in a string as \n`}
		}
	}
}

// unescape decodes the escapes of a string whose first byte is at offset off.
func unescape(text *string, off int) *syntaxError {
	s := *text
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		if i+1 < len(s) {
			if at := strings.IndexByte(`"\/bfnrt`, s[i+1]); at >= 0 {
				out = append(out, "\"\\/\b\f\n\r\t"[at])
				i += 2
				continue
			}
		}
		c, size := unicodeEscape(s[i:])
		if size == 0 {
			return &syntaxError{off: off + i, text: `expected one of \" \\ \/ \b \f \n \r \t \uXXXX after a backslash`, hint: `write a backslash as \\`}
		}
		out = utf8.AppendRune(out, c)
		i += size
	}
	*text = string(out)
	return nil
}

// unicodeEscape decodes \uXXXX or a surrogate pair of them at the start of s.
// A size of 0 says that there is none.
func unicodeEscape(s string) (c rune, size int) {
	c, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(c) {
		return c, 6
	}
	low, ok := hex4(s[6:])
	if pair := utf16.DecodeRune(c, low); ok && pair != utf8.RuneError {
		return pair, 12
	}
	return 0, 0
}

func hex4(s string) (c rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		d := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if d < 0 || s[i] < '0' {
			return 0, false
		}
		c = c<<4 | rune(d)
	}
	return c, true
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

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isNameByte says that c may stand in a name as of a shell variable.
func isNameByte(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}
