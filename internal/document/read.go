package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a document, so that no input costs more than a few megabytes. In
// YAML values and levels are counted with aliases expanded.
const (
	MaxBytes        = 1 << 20
	maxValues       = 200_000
	maxLevels       = 64
	maxLevelsStrict = 32 // of a document that must be JSON
)

// ReadJSON reads a document that must be JSON, one value in valid UTF-8. The
// error is a Problems. Whoever calls it bounds the size of the text.
func ReadJSON(src string) (*Node, error) {
	n, err := readJSON(src)
	if !utf8.ValidString(src) {
		err = &syntaxError{off: invalidByte(src), text: "expected text in UTF-8, found another encoding"}
	}
	if err == nil {
		return n, nil
	}
	before := src[:err.off]
	line, start := strings.Count(before, "\n")+1, strings.LastIndexByte(before, '\n')+1
	column := utf8.RuneCountInString(before[start:]) + 1
	return nil, Problems{{Message: fmt.Sprintf("is not JSON: line %d, column %d: %s", line, column, err.text), Hint: err.hint, Line: line}}
}

func readJSON(src string) (*Node, *syntaxError) {
	r := &jsonReader{src: src, line: 1, strict: true}
	n, err := r.document("a JSON object")
	if err == nil && !r.atEnd() {
		err = r.unexpected("the end of the file")
	}
	return n, err
}

// Read reads a document: JSON if it starts with {, YAML otherwise. The error
// is a Problems.
func Read(data []byte) (*Node, error) {
	src, err := decodeText(data, "a job file", "put data into project storage")
	if err != nil {
		return nil, err
	}
	switch first := strings.TrimSpace(src); {
	case first == "":
		return nil, Problems{{Message: "is empty"}}
	case first[0] != '{':
		n, err := (&yamlTree{several: "submit one job with each file"}).read(src)
		if n == nil && err == nil {
			err = Problems{{Message: "is empty"}}
		}
		return n, err
	}
	r := &jsonReader{src: src, line: 1}
	n, wrong := r.document("a value")
	if wrong == nil && !r.atEnd() {
		wrong = &syntaxError{off: r.pos, text: "something follows the document"}
	}
	if wrong != nil {
		return nil, Problems{{Message: "is not JSON: " + wrong.text, Hint: wrong.hint, Line: r.lineAt(wrong.off)}}
	}
	return n, nil
}

// ReadPart is Read for a part of a file that begins after so many lines of it:
// values and problems have the lines of the file.
func ReadPart(data []byte, after int) (*Node, error) {
	n, err := Read(data)
	if problems, ok := errors.AsType[Problems](err); ok {
		for i := range problems {
			if problems[i].Line > 0 {
				problems[i].Line += after
			}
		}
	}
	if n != nil {
		n.moveDown(int32(after))
	}
	return n, err
}

func (n *Node) moveDown(lines int32) {
	n.Line += lines
	for _, kid := range n.Kids {
		kid.moveDown(lines)
	}
}

// ReadSettings reads a file of settings, which is YAML. Numbers and truth values
// keep the text that was written: 02770 may be a mode, and 1.10 a version. A file
// of nothing but comments is an object without members. The error is a Problems.
func ReadSettings(data []byte) (*Node, error) {
	src, err := decodeText(data, "a file of settings", "")
	if err != nil {
		return nil, err
	}
	n, err := (&yamlTree{written: true, several: "write all into one"}).read(src)
	if n == nil && err == nil {
		n = &Node{Kind: ObjectKind, Line: 1}
	}
	return n, err
}

// decodeText is the text of a file that is not too long.
func decodeText(data []byte, file, hint string) (string, error) {
	if len(data) > MaxBytes {
		return "", Problems{{Message: fmt.Sprintf("has %d bytes, %s may have at most %d", len(data), file, MaxBytes), Hint: hint}}
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	if !utf8.ValidString(src) {
		return "", Problems{{Message: "is not text in UTF-8"}}
	}
	return src, nil
}

// invalidByte is the offset of the first byte that is not UTF-8.
func invalidByte(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}
