package importer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// kind is what a value of a YAML or JSON document is.
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

// node is one value of a YAML or JSON document, with its place.
type node struct {
	kind  kind
	line  int    // from 1: of its key if it is a member of an object
	key   string // in an object
	index int    // in an array
	up    *node  // nil: the document
	plain bool   // YAML without quotes, where yes and off may be truth values
	text  string // a string decoded, a number as written, "true" or "false"
	kids  []*node
	flag  string // the flag of the command line that gave it; empty: the document did
}

// Bounds of a document, aliases expanded.
const (
	maxValues = 200_000
	maxDepth  = 64
)

// readTree reads a document: JSON if it starts with {, YAML otherwise. The
// error is a job.Problems.
func readTree(data []byte) (*node, error) {
	if len(data) > document.MaxBytes {
		return nil, job.Problems{{Message: fmt.Sprintf("has %d bytes, a job file may have at most %d", len(data), document.MaxBytes),
			Hint: "put data into project storage"}}
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	if !utf8.ValidString(src) {
		return nil, job.Problems{{Message: "is not text in UTF-8"}}
	}
	switch first := strings.TrimSpace(src); {
	case first == "":
		return nil, job.Problems{{Message: "is empty"}}
	case first[0] == '{':
		return readJSON(src)
	}
	return readYAML(src)
}

// child returns the first member called key, or nil.
func (n *node) child(key string) *node {
	for _, kid := range n.kids {
		if n.kind == objectKind && kid.key == key {
			return kid
		}
	}
	return nil
}

// given returns the member called key if it is not null, or nil.
func (n *node) given(key string) *node {
	if kid := n.child(key); kid != nil && kid.kind != nullKind {
		return kid
	}
	return nil
}

// path is the place of a value as people write it: spec.containers[2].image.
func (n *node) path() string {
	if n.flag != "" {
		return n.flag
	}
	if n.up == nil {
		return ""
	}
	base := n.up.path()
	if n.up.kind == arrayKind {
		return fmt.Sprintf("%s[%d]", base, n.index)
	}
	return member(base, n.key)
}

// member is the path of a member of the object at a path.
func member(base, key string) string {
	plain := key != "" && len(key) <= 64
	for _, c := range key {
		plain = plain && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	}
	switch {
	case !plain:
		return base + "[" + quote(key) + "]"
	case base == "":
		return key
	}
	return base + "." + key
}

// quote shows a text of the document in a message, cut if it is long.
func quote(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return strconv.Quote(s)
}
