package job

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gbatch/oci/ref"
)

// decoder turns a syntax tree into a Spec by the tables in fields.go. It goes
// on after a problem, so that all are found in one go.
type decoder struct {
	src   string
	path  []step
	found []located
	more  int // problems found beyond MaxProblems
	notes []Note
	creds *ref.Credentials

	secrets map[string]string // by name

	elsewhere map[string]string // see elsewhere; nil for other formats
}

// step is one part of a path: a key, or the index of an array if that is >= 0.
type step struct {
	key   string
	index int
}

// located is a problem and its place in the document.
type located struct {
	Problem
	off int
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
		d.wrongKind(n, "an object { }")
		return false
	}
	var seen uint64
	for i := range n.kids {
		kid := &n.kids[i]
		at := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == kid.key })
		switch {
		case at < 0 && kid.kind == nullKind && refused[kid.key] != "":
		case at < 0:
			d.unknown(kid, names(fields))
		case seen&(1<<at) != 0:
			d.repeated(kid)
		default:
			seen |= 1 << at
			d.push(kid.key)
			if kid.kind != nullKind {
				fields[at].read(d, kid, to)
			} else if fields[at].required {
				d.problem(kid, "is required and must not be null", "")
			}
			d.pop()
		}
	}
	for i, f := range fields {
		if f.required && seen&(1<<i) == 0 {
			d.push(f.name)
			d.problem(n, "is required and missing", "")
			d.pop()
		}
	}
	return true
}

func names[T any](fields []field[T]) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return all
}

func (d *decoder) push(key string) { d.path = append(d.path, step{key: key, index: -1}) }
func (d *decoder) pushIndex(i int) { d.path = append(d.path, step{index: i}) }
func (d *decoder) pop()            { d.path = d.path[:len(d.path)-1] }

// pathText is the path as people write it: request.docker.storage[2].hostPath.
func (d *decoder) pathText() string {
	var b strings.Builder
	for i, s := range d.path {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.IndexFunc(s.key, func(c rune) bool { return c > '~' || !isNameByte(byte(c)) }) >= 0 || len(s.key) > 64 || s.key == "":
			b.WriteString("[" + quote(s.key) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// quote shows a text of the document in a message, cut if it is long.
func quote(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return strconv.Quote(s)
}

// problem reports that the value n at the current path is wrong.
func (d *decoder) problem(n *node, message, hint string) {
	if d.full() {
		d.more++
		return
	}
	d.found = append(d.found, located{Problem{Path: d.pathText(), Message: message, Hint: hint}, n.off})
}

// full says that problems are only counted from now on.
func (d *decoder) full() bool { return len(d.found) == MaxProblems }

// problemAt is problem for a member of the current object.
func (d *decoder) problemAt(n *node, key, message, hint string) {
	if kid := n.child(key); kid != nil {
		n = kid
	}
	d.push(key)
	d.problem(n, message, hint)
	d.pop()
}

func (d *decoder) note(message string) {
	if len(d.notes) < MaxProblems {
		d.notes = append(d.notes, Note{Path: d.pathText(), Message: message})
	}
}

func (d *decoder) unknown(kid *node, known []string) {
	if d.full() {
		d.more++ // without the search for a suggestion, which takes its time
		return
	}
	d.push(kid.key)
	defer d.pop()
	if hint, ok := refused[kid.key]; ok {
		d.problem(kid, "is not supported", hint)
	} else if place, ok := d.elsewhere[kid.key]; ok {
		d.problem(kid, "is not a field here", "it belongs in "+place)
	} else if word := Nearest(kid.key, known); word != "" {
		d.problem(kid, "is not a field of this document", fmt.Sprintf("did you mean %q?", word))
	} else {
		d.problem(kid, "is not a field of this document", "known here: "+list(known))
	}
}

func (d *decoder) repeated(kid *node) {
	d.push(kid.key)
	d.problem(kid, "is given twice", "keep one of them")
	d.pop()
}

func (d *decoder) wrongKind(n *node, want string) {
	d.problem(n, fmt.Sprintf("must be %s, is %s", want, kindNames[n.kind]), "")
}

// problems returns what was found in document order, or nil.
func (d *decoder) problems() Problems {
	if len(d.found) == 0 {
		return nil
	}
	slices.SortStableFunc(d.found, func(a, b located) int { return cmp.Compare(a.off, b.off) })
	ps := make(Problems, len(d.found))
	for i, f := range d.found {
		ps[i] = f.Problem
		ps[i].Line, _ = position(d.src, f.off)
	}
	if d.more > 0 {
		last := &ps[len(ps)-1]
		*last = Problem{Message: fmt.Sprintf("and %d more problems", d.more+1)}
	}
	return ps
}

// position is the line and column, in characters, of a byte offset, from 1.
func position(src string, off int) (line, column int) {
	before := src[:off]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// elements calls one for each element of the array n, at most limit of them.
func (d *decoder) elements(n *node, limit int, one func(i int, n *node)) {
	if n.kind != arrayKind {
		d.wrongKind(n, "an array [ ]")
		return
	}
	if len(n.kids) > limit {
		d.problem(n, fmt.Sprintf("has %d entries, at most %d are allowed", len(n.kids), limit), "")
		return
	}
	for i := range n.kids {
		d.pushIndex(i)
		one(i, &n.kids[i])
		d.pop()
	}
}

// boolean reads true or false.
func (d *decoder) boolean(n *node, to *bool) {
	if n.kind != boolKind {
		hint := ""
		if n.kind == stringKind && (n.text == "true" || n.text == "false") {
			hint = "write it without quotes"
		}
		d.problem(n, "must be true or false, is "+kindNames[n.kind], hint)
		return
	}
	*to = n.text == "true"
}

// number reads a number of any form; ok is false after a problem.
func (d *decoder) number(n *node, want string) (x float64, ok bool) {
	if n.kind != numberKind {
		hint := ""
		if _, err := strconv.ParseFloat(n.text, 64); n.kind == stringKind && err == nil {
			hint = "write it without quotes"
		}
		d.problem(n, fmt.Sprintf("must be %s, is %s", want, kindNames[n.kind]), hint)
		return 0, false
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		d.problem(n, "is out of range", "")
		return 0, false
	}
	return x, true
}

// integer reads a whole number from low to high. 2.0 is whole.
func (d *decoder) integer(n *node, to *int, low, high int) {
	x, ok := d.number(n, "a whole number")
	switch {
	case !ok:
	case x < float64(low):
		d.problem(n, fmt.Sprintf("must be at least %d, is %s", low, shorten(n.text)), "")
	case x > float64(high):
		d.problem(n, fmt.Sprintf("must be at most %d, is %s", high, shorten(n.text)), "")
	case x != math.Trunc(x):
		d.problem(n, "must be a whole number, is "+shorten(n.text), "")
	default:
		*to = int(x)
	}
}

// shorten cuts a number as written for a message.
func shorten(s string) string {
	if len(s) > 24 {
		return s[:24] + "..."
	}
	return s
}

// str reads a string that check accepts: check returns what is wrong with it,
// to be read after the path, or "". The result owns its memory.
func (d *decoder) str(n *node, to *string, check func(s string) string) bool {
	if n.kind != stringKind {
		d.wrongKind(n, "a string")
		return false
	}
	if wrong := check(n.text); wrong != "" {
		d.problem(n, wrong, "")
		return false
	}
	*to = strings.Clone(n.text)
	return true
}

// strs reads an array of strings, or one string as an array of one.
func (d *decoder) strs(n *node, to *[]string, check func(s string) string) {
	one := func(n *node) {
		var s string
		if d.str(n, &s, check) {
			*to = append(*to, s)
		}
	}
	if n.kind == stringKind {
		one(n)
		return
	}
	d.elements(n, maxListEntries, func(_ int, n *node) { one(n) })
}

// duration reads a duration of at least low.
func (d *decoder) duration(n *node, to *Duration, low Duration) {
	if n.kind != stringKind {
		d.problem(n, "must be a duration in quotes, is "+kindNames[n.kind], `write a number and a unit, such as "90 minutes", "1.5 h" or "2 weeks"`)
		return
	}
	x, err := ParseDuration(n.text)
	switch {
	case errors.Is(err, errDuration):
		d.problem(n, fmt.Sprintf("is %s: %v", quote(n.text), err), "units: week, day, hour (h), minute (min, m), second (sec, s)")
	case err != nil:
		d.problem(n, fmt.Sprintf("is %s: %v", quote(n.text), err), "")
	case x < low:
		d.problem(n, fmt.Sprintf("must be at least %s, is %s", low, quote(n.text)), "")
	default:
		*to = x
	}
}

func (d *decoder) instant(n *node, to *Instant) {
	if n.kind != stringKind {
		d.wrongKind(n, "a date and time in quotes")
		return
	}
	x, err := ParseInstant(n.text)
	if err != nil {
		d.problem(n, fmt.Sprintf("is %s: %v", quote(n.text), err), "")
		return
	}
	*to = x
}

// Checks for str. plain wants low to high characters and no control characters.
func plain(low, high int) func(string) string {
	return func(s string) string {
		switch n := utf8.RuneCountInString(s); {
		case n < low && low == 1 || low > 0 && strings.TrimSpace(s) == "":
			return "must not be empty"
		case n < low:
			return fmt.Sprintf("must have at least %d characters, is %s", low, quote(s))
		case n > high:
			return fmt.Sprintf("must have at most %d characters, has %d", high, n)
		case strings.ContainsFunc(s, unicode.IsControl):
			return "must not contain line breaks or control characters"
		}
		return ""
	}
}

// word wants letters, digits and _ plus the bytes in also, at most 64 in all.
func word(also string) func(string) string {
	return func(s string) string {
		for i := range len(s) {
			if !isNameByte(s[i]) && strings.IndexByte(also, s[i]) < 0 {
				return fmt.Sprintf("may have letters, digits and %s only, is %s", strings.Join(strings.Split("_"+also, ""), " "), quote(s))
			}
		}
		if s == "" || len(s) > 64 {
			return "must have 1 to 64 characters"
		}
		return ""
	}
}
