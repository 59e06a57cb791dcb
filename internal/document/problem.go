package document

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Path    string `json:"path,omitempty"` // where: "request.resources.gpus"; empty: the document itself
	Message string `json:"message"`        // what is wrong, to be read after the path
	Hint    string `json:"hint,omitempty"` // what to do
	Line    int    `json:"line,omitempty"` // from 1; 0: not known
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Path == "" {
		b.WriteString("document")
	}
	b.WriteString(p.Path)
	if p.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", p.Line)
	}
	b.WriteString(": " + p.Message)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Problems is the error of a document that is not accepted: everything that is
// wrong with it, in document order. No text in it contains a password.
type Problems []Problem

// MaxProblems bounds Problems; the last one then tells how many are left out.
const MaxProblems = 100

func (ps Problems) Error() string {
	if len(ps) == 1 {
		return ps[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems:", len(ps))
	for _, p := range ps {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Note tells a user how something was understood. It is not an error.
type Note struct {
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (n Note) String() string {
	if n.Path == "" {
		return "document: " + n.Message
	}
	return n.Path + ": " + n.Message
}
