package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Dialect is how people talk of a family of documents, and what is known of
// their keys besides the fields.
type Dialect struct {
	Object, Array string // what such a value is called where another one was found
	Bare          string // bytes besides those of names that a key in a path may have without brackets
	Quotes        bool   // who wrote a number in place of a string is told to quote it

	// Refused are keys that are understood and not accepted, with what to do
	// instead. As null they are accepted.
	Refused map[string]string
	// Elsewhere is the object that a key belongs to which is no field where it
	// is, or ""; nil: no such key is known.
	Elsewhere func(key string) string
}

// Decoder collects what is wrong with a document, and remarks. It goes on
// after a problem, so that all are found in one go.
type Decoder struct {
	dialect *Dialect
	found   []located
	more    int            // problems found beyond MaxProblems
	bad     map[*Node]bool // has a problem
	notes   []Note
}

// located is a problem and the offset of its value, which orders those of a line.
type located struct {
	Problem
	off int32
}

// NewDecoder returns a Decoder for documents of a dialect.
func NewDecoder(dialect *Dialect) Decoder { return Decoder{dialect: dialect} }

// Field is one key of an object. Read is called with the value at that key,
// never with a null: null means the same as leaving the key out. It is an
// alias, so that tables of other packages may leave out the names.
type Field[D, T any] = struct {
	Name     string
	Read     func(d D, n *Node, to *T)
	Required bool
}

// self makes what embeds a Decoder one that Object can read with.
func (d *Decoder) self() *Decoder { return d }

// Object reads n by the table fields and reports what is unknown, repeated or
// missing. It says whether n is an object at all.
func Object[D interface{ self() *Decoder }, T any](d D, n *Node, fields []Field[D, T], to *T) bool {
	r := d.self()
	if n.Kind != ObjectKind {
		r.WrongKind(n, r.dialect.Object)
		return false
	}
	seen := make([]bool, len(fields))
	for _, kid := range n.Kids {
		at := slices.IndexFunc(fields, func(f Field[D, T]) bool { return f.Name == kid.Key })
		switch {
		case at < 0:
			r.unknown(kid, func() []string { return Names(fields) })
		case seen[at]:
			r.Repeated(kid)
		default:
			seen[at] = true
			if kid.Kind != NullKind {
				fields[at].Read(d, kid, to)
			} else if fields[at].Required {
				r.Problem(kid, "is required and must not be null", "")
			}
		}
	}
	for i, f := range fields {
		if f.Required && !seen[i] {
			r.Missing(n, f.Name, "")
		}
	}
	return true
}

// Names are the keys of a table.
func Names[D, T any](fields []Field[D, T]) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	return all
}

// Path is the place of a value for people.
func (d *Decoder) Path(n *Node) string { return n.path(d.dialect.Bare) }

// Problem reports that the value n is wrong.
func (d *Decoder) Problem(n *Node, message, hint string) {
	if d.full() {
		d.more++
		return
	}
	if d.bad == nil {
		d.bad = map[*Node]bool{}
	}
	d.bad[n] = true
	d.found = append(d.found, located{Problem{Path: d.Path(n), Line: int(n.Line), Message: message, Hint: hint}, n.off})
}

// ProblemAt is Problem for a member of the object n, which need not be there.
func (d *Decoder) ProblemAt(n *Node, key, message, hint string) {
	kid := n.Child(key)
	if kid == nil {
		kid = &Node{Up: n, Key: key, Line: n.Line, off: n.off}
	}
	d.Problem(kid, message, hint)
}

// Missing reports that the object n has no member called key.
func (d *Decoder) Missing(n *Node, key, hint string) {
	d.ProblemAt(n, key, "is required and missing", hint)
}

// Repeated reports a member of an object that has had one of its key before.
func (d *Decoder) Repeated(kid *Node) { d.Problem(kid, "is given twice", "keep one of them") }

// WrongKind reports that n is not what is wanted, such as a string.
func (d *Decoder) WrongKind(n *Node, want string) {
	hint := ""
	if d.dialect.Quotes && (n.Kind == NumberKind || n.Kind == BoolKind) && strings.HasPrefix(want, "a string") {
		hint = "write it in quotes"
	}
	d.Problem(n, fmt.Sprintf("must be %s, is %s", want, n.Kind), hint)
}

// Told reports problems that were found otherwise, as they are.
func (d *Decoder) Told(ps ...Problem) {
	for _, p := range ps {
		d.found = append(d.found, located{Problem: p})
	}
}

// Note remarks on the value n. Of very many notes the first are kept.
func (d *Decoder) Note(n *Node, message string) {
	if len(d.notes) < MaxProblems {
		d.notes = append(d.notes, Note{Path: d.Path(n), Message: message})
	}
}

// Notes are the remarks so far.
func (d *Decoder) Notes() []Note { return d.notes }

// Bad says whether a problem with the value n was reported.
func (d *Decoder) Bad(n *Node) bool { return d.bad[n] }

// Count is the number of problems so far.
func (d *Decoder) Count() int { return len(d.found) + d.more }

// full says that problems are only counted from now on.
func (d *Decoder) full() bool { return len(d.found) >= MaxProblems }

func (d *Decoder) unknown(kid *Node, known func() []string) {
	refused, isRefused := d.dialect.Refused[kid.Key]
	place := ""
	if d.dialect.Elsewhere != nil && !d.full() {
		place = d.dialect.Elsewhere(kid.Key)
	}
	switch {
	case isRefused && kid.Kind == NullKind:
	case d.full():
		d.more++ // without the search for a suggestion, which takes its time
	case isRefused:
		d.Problem(kid, "is not supported", refused)
	case place != "":
		d.Problem(kid, "is not a field here", "it belongs in "+place)
	default:
		hint := "known here: " + strings.Join(slices.Sorted(slices.Values(known())), ", ")
		if word := Nearest(kid.Key, known()); word != "" {
			hint = fmt.Sprintf("did you mean %q?", word)
		}
		d.Problem(kid, "is not a field of this document", hint)
	}
}

// Problems returns what was found in the order of the document, or nil.
func (d *Decoder) Problems() Problems {
	if len(d.found) == 0 {
		return nil
	}
	slices.SortStableFunc(d.found, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.off, b.off))
	})
	most := min(len(d.found), MaxProblems)
	ps := make(Problems, most)
	for i, f := range d.found[:most] {
		ps[i] = f.Problem
	}
	if more := d.Count() - most; more > 0 {
		ps[most-1] = Problem{Message: fmt.Sprintf("and %d more problems", more+1)}
	}
	return ps
}
