package importer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gbatch/internal/job"
)

// jsonTree turns the tokens of a JSON text into nodes.
type jsonTree struct {
	dec    *jsontext.Decoder
	src    string
	off    int // how far lines are counted
	line   int
	values int
}

func readJSON(src string) (*node, error) {
	t := &jsonTree{src: src, line: 1, dec: jsontext.NewDecoder(strings.NewReader(src), jsontext.AllowDuplicateNames(true))}
	n, err := t.value(nil)
	if err == nil && strings.TrimSpace(src[t.dec.InputOffset():]) != "" {
		err = errors.New("something follows the document")
		t.next()
	}
	if err == nil {
		return n, nil
	}
	if e := (*jsontext.SyntacticError)(nil); errors.As(err, &e) {
		err = e.Err
		t.count(int(e.ByteOffset))
	}
	return nil, job.Problems{{Message: "is not JSON: " + err.Error(), Line: t.line}}
}

// count goes on to a byte offset and counts the lines on the way.
func (t *jsonTree) count(off int) {
	if off = min(off, len(t.src)); off > t.off {
		t.line += strings.Count(t.src[t.off:off], "\n")
		t.off = off
	}
}

// next goes on to where the next token starts.
func (t *jsonTree) next() {
	off := int(t.dec.InputOffset())
	rest := strings.TrimLeft(t.src[off:], " \t\r\n,:")
	t.count(len(t.src) - len(rest))
}

func (t *jsonTree) value(up *node) (*node, error) {
	t.next()
	n := &node{up: up, line: t.line}
	if t.values++; t.values > maxValues {
		return nil, fmt.Errorf("it has more than %d values", maxValues)
	}
	if t.dec.StackDepth() > maxDepth {
		return nil, fmt.Errorf("it has more than %d levels", maxDepth)
	}
	token, err := t.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
	case 't', 'f':
		n.kind, n.text = boolKind, token.String()
	case '0':
		n.kind, n.text = numberKind, token.String()
	case '"':
		n.kind, n.text = stringKind, token.String()
	case '{':
		n.kind = objectKind
		return n, t.members(n)
	case '[':
		n.kind = arrayKind
		return n, t.elements(n)
	}
	return n, nil
}

func (t *jsonTree) members(n *node) error {
	for t.dec.PeekKind() != '}' {
		t.next()
		line := t.line
		key, err := t.dec.ReadToken()
		if err != nil {
			return err
		}
		name := key.String() // a token is gone with the next one
		kid, err := t.value(n)
		if err != nil {
			return err
		}
		kid.key, kid.line = name, line
		n.kids = append(n.kids, kid)
	}
	_, err := t.dec.ReadToken()
	return err
}

func (t *jsonTree) elements(n *node) error {
	for t.dec.PeekKind() != ']' {
		kid, err := t.value(n)
		if err != nil {
			return err
		}
		kid.index = len(n.kids)
		n.kids = append(n.kids, kid)
	}
	_, err := t.dec.ReadToken()
	return err
}
