package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Elements calls one for each element of an array. A null is none.
func (d *Decoder) Elements(n *Node, one func(n *Node)) {
	if n.Kind != ArrayKind {
		d.WrongKind(n, d.dialect.Array)
		return
	}
	for _, kid := range n.Kids {
		if kid.Kind == NullKind {
			d.Problem(kid, "is empty", "remove it")
			continue
		}
		one(kid)
	}
}

// Str reads a string.
func (d *Decoder) Str(n *Node) (string, bool) {
	if n.Kind != StringKind {
		d.WrongKind(n, "a string")
		return "", false
	}
	return n.Text, true
}

// Strs reads a list of strings, or one string as a list of one.
func (d *Decoder) Strs(n *Node) (all []string) {
	if n.Kind == StringKind {
		return []string{n.Text}
	}
	d.Elements(n, func(n *Node) {
		if s, ok := d.Str(n); ok {
			all = append(all, s)
		}
	})
	return all
}

// Scalar reads a string, number or truth value as the text that was written.
func (d *Decoder) Scalar(n *Node) (string, bool) {
	if n.Kind == ArrayKind || n.Kind == ObjectKind || n.Kind == NullKind {
		d.WrongKind(n, "a string, a number or a truth value")
		return "", false
	}
	return n.Text, true
}

// Boolean reads true or false, and in YAML what it had for them before version 1.2.
func (d *Decoder) Boolean(n *Node) (value, ok bool) {
	text := strings.ToLower(n.Text)
	switch {
	case n.Kind == BoolKind:
		return text == "true", true
	case n.Kind == StringKind && n.Plain && (text == "yes" || text == "on"):
		return true, true
	case n.Kind == StringKind && n.Plain && (text == "no" || text == "off"):
		return false, true
	}
	hint := ""
	if n.Kind == StringKind && (text == "true" || text == "false") {
		hint = "write it without quotes"
	}
	d.Problem(n, "must be true or false, is "+n.Kind.String(), hint)
	return false, false
}

// Number reads a number of any form.
func (d *Decoder) Number(n *Node, want string) (float64, bool) {
	if n.Kind != NumberKind {
		hint := ""
		if _, err := strconv.ParseFloat(n.Text, 64); n.Kind == StringKind && err == nil {
			hint = "write it without quotes"
		}
		d.Problem(n, fmt.Sprintf("must be %s, is %s", want, n.Kind), hint)
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		d.Problem(n, "is out of range", "")
		return 0, false
	}
	return x, true
}

// Integer reads a whole number from low to high. 2.0 is whole.
func (d *Decoder) Integer(n *Node, low, high int) (int, bool) {
	x, ok := d.Number(n, "a whole number")
	switch {
	case !ok:
		return 0, false
	case x < float64(low):
		d.Problem(n, fmt.Sprintf("must be at least %d, is %s", low, Shorten(n.Text)), "")
	case x > float64(high):
		d.Problem(n, fmt.Sprintf("must be at most %d, is %s", high, Shorten(n.Text)), "")
	case x != math.Trunc(x):
		d.Problem(n, "must be a whole number, is "+Shorten(n.Text), "")
	default:
		return int(x), true
	}
	return 0, false
}

// Shorten cuts a number as written for a message.
func Shorten(s string) string {
	if len(s) > 24 {
		return s[:24] + "..."
	}
	return s
}

// OneOf reads a string that is one of words.
func (d *Decoder) OneOf(n *Node, words ...string) (string, bool) {
	s, ok := d.Str(n)
	if ok && !slices.Contains(words, s) {
		d.Problem(n, fmt.Sprintf("must be one of %s, is %s", strings.Join(words, ", "), Quote(s)), "")
		return "", false
	}
	return s, ok
}
