// Package document reads JSON and YAML into one tree of values with their
// places, and decodes such a tree strictly by tables of fields: what is unknown,
// repeated, missing or of another kind is told with its place, all of it at once.
//
// It knows nothing of jobs or of any format. Native job files are JSON alone
// (ReadJSON); those of other systems are either (Read); files of settings are
// YAML (ReadSettings). The package is pure. A
// tree belongs to whoever read it; its texts may share memory with the whole
// document, so who keeps one clones it, since a document may hold a password.
package document

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a value is.
type kind uint8

// The kinds of values.
const (
	NullKind kind = iota
	BoolKind
	NumberKind
	StringKind
	ArrayKind
	ObjectKind
)

func (k kind) String() string {
	return [...]string{"null", "a truth value", "a number", "a string", "an array", "an object"}[k]
}

// Node is one value of a document, with its place. There are as many as values, so
// it is small; a document has at most MaxBytes.
type Node struct {
	Kind  kind
	Plain bool    // YAML without quotes, where yes and off may be truth values
	Line  int32   // from 1: of its key if it is a member of an object; 0: not known
	off   int32   // byte offset of the value in a document that must be JSON, which orders what is on one line; else 0
	Index int32   // in an array
	Key   string  // in an object
	Up    *Node   // nil: the document
	Text  string  // a string decoded, a number as written, "true" or "false"
	Kids  []*Node // of an array or object, in the order of the document
	Flag  string  // the flag of the command line that gave it; empty: the document did
}

// Child returns the first member called key, or nil.
func (n *Node) Child(key string) *Node {
	for _, kid := range n.Kids {
		if n.Kind == ObjectKind && kid.Key == key {
			return kid
		}
	}
	return nil
}

// Given returns the member called key if it is not null, or nil.
func (n *Node) Given(key string) *Node {
	if kid := n.Child(key); kid != nil && kid.Kind != NullKind {
		return kid
	}
	return nil
}

// path is the place of a value as people write it: spec.containers[2].image.
// Keys that have other bytes than names and those of also are in brackets.
func (n *Node) path(also string) string {
	switch {
	case n.Flag != "":
		return n.Flag
	case n.Up == nil:
		return ""
	case n.Up.Kind == ArrayKind:
		return fmt.Sprintf("%s[%d]", n.Up.path(also), n.Index)
	}
	return member(n.Up.path(also), n.Key, also)
}

// Member is the path of a member of the object at a path, in a native document.
func Member(base, key string) string { return member(base, key, "") }

func member(base, key, also string) string {
	plain := key != "" && len(key) <= 64
	for i := range len(key) {
		plain = plain && (IsNameByte(key[i]) || strings.IndexByte(also, key[i]) >= 0)
	}
	switch {
	case !plain:
		return base + "[" + Quote(key) + "]"
	case base == "":
		return key
	}
	return base + "." + key
}

// IsNameByte says that c may stand in a name as of a shell variable.
func IsNameByte(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// IsName says that s begins with a letter or digit and has at most that many
// letters, digits and bytes of also. Such checks are no regular expressions,
// which would all be compiled at the start of every program.
func IsName(s, also string, most int) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || strings.IndexByte(also, c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Quote shows a text of the document in a message, cut if it is long.
func Quote(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return strconv.Quote(s)
}
