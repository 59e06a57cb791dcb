package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// decoder reads a document of another format into a job. It goes on after a
// problem, so that all are found in one go, and remembers which value of the
// document became which field of the job: see finish.
type decoder struct {
	found []job.Problem
	bad   map[*node]bool // has a problem
	notes []job.Note
	from  map[string]*node // value by the path of the native field it became
}

// field is one key of an object. read is called with the value at that key,
// never with a null: null means the same as leaving the key out.
type field[T any] struct {
	name     string
	read     func(d *decoder, n *node, to *T)
	required bool
}

// object reads n by the table fields and reports what is unknown, repeated or
// missing. It says whether n is an object at all.
func object[T any](d *decoder, n *node, fields []field[T], to *T) bool {
	if n.kind != objectKind {
		d.wrongKind(n, "an object")
		return false
	}
	seen := map[string]bool{}
	for _, kid := range n.kids {
		at := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == kid.key })
		switch {
		case at < 0:
			d.unknown(kid, names(fields))
		case seen[kid.key]:
			d.problem(kid, "is given twice", "keep one of them")
		case kid.kind != nullKind:
			fields[at].read(d, kid, to)
		case fields[at].required:
			d.problem(kid, "is required and must not be null", "")
		}
		seen[kid.key] = true
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			d.missing(n, f.name, "")
		}
	}
	return true
}

func names[T any](fields []field[T]) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// refuse is a reader for a key that is known and cannot be done: it says what
// to do instead.
func refuse[T any](hint string) func(*decoder, *node, *T) {
	return func(d *decoder, n *node, _ *T) { d.problem(n, "is not supported", hint) }
}

// remark is a reader for a key that changes nothing here: it says why.
func remark[T any](message string) func(*decoder, *node, *T) {
	return func(d *decoder, n *node, _ *T) { d.note(n, message) }
}

// problem reports that the value n is wrong.
func (d *decoder) problem(n *node, message, hint string) {
	if d.bad == nil {
		d.bad = map[*node]bool{}
	}
	d.bad[n] = true
	d.found = append(d.found, job.Problem{Path: n.path(), Line: n.line, Message: message, Hint: hint})
}

// missing reports that the object n has no member called key.
func (d *decoder) missing(n *node, key, hint string) {
	d.problem(&node{up: n, key: key, line: n.line}, "is required and missing", hint)
}

func (d *decoder) note(n *node, message string) {
	if len(d.notes) < document.MaxProblems {
		d.notes = append(d.notes, job.Note{Path: n.path(), Message: message})
	}
}

func (d *decoder) unknown(kid *node, known []string) {
	if len(d.found) > document.MaxProblems {
		d.problem(kid, "", "") // counted, without the search for a suggestion
		return
	}
	hint := "known here: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	if word := document.Nearest(kid.key, known); word != "" {
		hint = fmt.Sprintf("did you mean %q?", word)
	}
	d.problem(kid, "is not a field of this document", hint)
}

func (d *decoder) wrongKind(n *node, want string) {
	hint := ""
	if n.kind == numberKind || n.kind == boolKind {
		if strings.HasPrefix(want, "a string") {
			hint = "write it in quotes"
		}
	}
	d.problem(n, fmt.Sprintf("must be %s, is %s", want, kindNames[n.kind]), hint)
}

// elements calls one for each element of an array that is not null.
func (d *decoder) elements(n *node, one func(n *node)) {
	if n.kind != arrayKind {
		d.wrongKind(n, "a list")
		return
	}
	for _, kid := range n.kids {
		if kid.kind == nullKind {
			d.problem(kid, "is empty", "remove it")
			continue
		}
		one(kid)
	}
}

// str reads a string.
func (d *decoder) str(n *node) (string, bool) {
	if n.kind != stringKind {
		d.wrongKind(n, "a string")
		return "", false
	}
	return n.text, true
}

// strs reads a list of strings, or one string as a list of one.
func (d *decoder) strs(n *node) (all []string) {
	if n.kind == stringKind {
		return []string{n.text}
	}
	d.elements(n, func(n *node) {
		if s, ok := d.str(n); ok {
			all = append(all, s)
		}
	})
	return all
}

// scalar reads a string, number or truth value as the text that was written.
func (d *decoder) scalar(n *node) (string, bool) {
	if n.kind == arrayKind || n.kind == objectKind || n.kind == nullKind {
		d.wrongKind(n, "a string, a number or a truth value")
		return "", false
	}
	return n.text, true
}

// boolean reads true or false, and what YAML had for them before version 1.2.
func (d *decoder) boolean(n *node) (value, ok bool) {
	text := strings.ToLower(n.text)
	switch {
	case n.kind == boolKind:
		return n.text == "true", true
	case n.kind == stringKind && n.plain && (text == "yes" || text == "on"):
		return true, true
	case n.kind == stringKind && n.plain && (text == "no" || text == "off"):
		return false, true
	}
	hint := ""
	if n.kind == stringKind && (text == "true" || text == "false") {
		hint = "write it without quotes"
	}
	d.problem(n, "must be true or false, is "+kindNames[n.kind], hint)
	return false, false
}

// number reads a number of any form.
func (d *decoder) number(n *node, want string) (float64, bool) {
	if n.kind != numberKind {
		hint := ""
		if _, err := strconv.ParseFloat(n.text, 64); n.kind == stringKind && err == nil {
			hint = "write it without quotes"
		}
		d.problem(n, fmt.Sprintf("must be %s, is %s", want, kindNames[n.kind]), hint)
		return 0, false
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		d.problem(n, "is out of range", "")
		return 0, false
	}
	return x, true
}

// integer reads a whole number from low to high.
func (d *decoder) integer(n *node, low, high int) (int, bool) {
	x, ok := d.number(n, "a whole number")
	switch {
	case !ok:
		return 0, false
	case x < float64(low):
		d.problem(n, fmt.Sprintf("must be at least %d, is %s", low, n.text), "")
	case x > float64(high):
		d.problem(n, fmt.Sprintf("must be at most %d, is %s", high, n.text), "")
	case x != math.Trunc(x):
		d.problem(n, "must be a whole number, is "+n.text, "")
	default:
		return int(x), true
	}
	return 0, false
}

// oneOf reads a string that is one of words.
func (d *decoder) oneOf(n *node, words ...string) (string, bool) {
	s, ok := d.str(n)
	if ok && !slices.Contains(words, s) {
		d.problem(n, fmt.Sprintf("must be one of %s, is %s", strings.Join(words, ", "), quote(s)), "")
		return "", false
	}
	return s, ok
}

// problems returns what was found in the order of the document, or nil.
func (d *decoder) problems() error {
	if len(d.found) == 0 {
		return nil
	}
	slices.SortStableFunc(d.found, func(a, b job.Problem) int { return cmp.Compare(a.Line, b.Line) })
	ps := slices.Clone(d.found[:min(len(d.found), document.MaxProblems)])
	if more := len(d.found) - len(ps); more > 0 {
		ps[len(ps)-1] = job.Problem{Message: fmt.Sprintf("and %d more problems", more+1)}
	}
	return job.Problems(ps)
}
