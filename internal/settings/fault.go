package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Fault is something wrong with a value, as the owner of a file finds it.
type Fault struct {
	Path string // as projects[0].name
	Text string
}

// Faults is an error that has all of them.
type Faults []Fault

// Add adds one.
func (f *Faults) Add(path, format string, a ...any) {
	*f = append(*f, Fault{path, fmt.Sprintf(format, a...)})
}

// Err is the faults as an error, nil if there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

func (f Faults) Error() string {
	var lines []string
	for _, one := range f {
		lines = append(lines, one.Path+": "+one.Text)
	}
	return strings.Join(lines, "\n")
}

// Faults takes in what the owner found wrong, and puts it where it is written:
// a value that is a default has the line of the object that it would be in.
// What is said of a value that could not be read is left out.
func (s *Source) Faults(err error) {
	var faults Faults
	if s.root == nil || err == nil || s.Count() >= document.MaxProblems {
		return
	}
	if !errors.As(err, &faults) {
		s.Told(document.Problem{Message: err.Error()})
		return
	}
	for _, f := range faults {
		n, written := find(s.root, f.Path)
		if s.unread(n) || written && s.anyBad(n) {
			continue
		}
		p := document.Problem{Path: f.Path, Message: f.Text}
		if n != s.root {
			p.Line = int(n.Line)
		}
		s.Told(p)
	}
}

// unread says that n or what it is in could not be read.
func (s *Source) unread(n *document.Node) bool {
	return n != nil && (s.Bad(n) || s.unread(n.Up))
}

// anyBad says that something in n could not be read.
func (s *Source) anyBad(n *document.Node) bool {
	for _, kid := range n.Kids {
		if s.Bad(kid) || s.anyBad(kid) {
			return true
		}
	}
	return false
}

// find is the value at a path; if that is not written, the innermost of those
// that it is in. Keys may have dots in them.
func find(n *document.Node, path string) (at *document.Node, written bool) {
	for path != "" {
		kid, rest := step(n, strings.TrimPrefix(path, "."))
		if kid == nil {
			return n, false
		}
		n, path = kid, rest
	}
	return n, true
}

func step(n *document.Node, path string) (kid *document.Node, rest string) {
	if index, after, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && path[0] == '[' {
		if i, err := strconv.Atoi(index); err == nil && n.Kind == document.ArrayKind && i >= 0 && i < len(n.Kids) {
			return n.Kids[i], after
		}
	}
	if n.Kind != document.ObjectKind {
		return nil, ""
	}
	for _, k := range n.Kids {
		after, ok := strings.CutPrefix(path, k.Key)
		if ok && k.Key != "" && (after == "" || after[0] == '.' || after[0] == '[') && (kid == nil || len(k.Key) > len(kid.Key)) {
			kid, rest = k, after
		}
	}
	return kid, rest
}
