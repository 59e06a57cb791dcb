package job

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gbatch/internal/document"
	"gbatch/internal/job/times"
	"gbatch/oci/ref"
)

type (
	node         = document.Node
	field[T any] = document.Field[*decoder, T]
)

// decoder turns a tree into a Spec by the tables in fields.go.
type decoder struct {
	document.Decoder
	creds   *ref.Credentials
	secrets map[string]string // by name
}

func newDecoder(dialect *document.Dialect) *decoder {
	return &decoder{Decoder: document.NewDecoder(dialect)}
}

const anArray = "an array [ ]"

// The dialects of GPULab's documents. In version 2 it is known of the fields
// where they belong.
var (
	native   = document.Dialect{Object: "an object { }", Array: anArray, Refused: refused, Elsewhere: elsewhere}
	version1 = document.Dialect{Object: native.Object, Array: native.Array, Refused: refused}
)

// elements calls one for each element of the array n, at most limit of them.
func (d *decoder) elements(n *node, limit int, one func(i int, n *node)) {
	switch {
	case n.Kind != document.ArrayKind:
		d.WrongKind(n, anArray)
	case len(n.Kids) > limit:
		d.Problem(n, fmt.Sprintf("has %d entries, at most %d are allowed", len(n.Kids), limit), "")
	default:
		for i, kid := range n.Kids {
			one(i, kid)
		}
	}
}

func (d *decoder) boolean(n *node, to *bool) {
	if x, ok := d.Boolean(n); ok {
		*to = x
	}
}

func (d *decoder) integer(n *node, to *int, low, high int) {
	if x, ok := d.Integer(n, low, high); ok {
		*to = x
	}
}

// str reads a string that check accepts: check returns what is wrong with it,
// to be read after the path, or "". The result owns its memory.
func (d *decoder) str(n *node, to *string, check func(s string) string) bool {
	if n.Kind != document.StringKind {
		d.WrongKind(n, "a string")
		return false
	}
	if wrong := check(n.Text); wrong != "" {
		d.Problem(n, wrong, "")
		return false
	}
	*to = strings.Clone(n.Text)
	return true
}

// strs reads an array of strings, or one string as an array of one.
func (d *decoder) strs(n *node, to *[]string, check func(s string) string) {
	d.strsUpTo(maxListEntries, n, to, check)
}

func (d *decoder) strsUpTo(limit int, n *node, to *[]string, check func(s string) string) {
	one := func(n *node) {
		var s string
		if d.str(n, &s, check) {
			*to = append(*to, s)
		}
	}
	if n.Kind == document.StringKind {
		one(n)
		return
	}
	d.elements(n, limit, func(_ int, n *node) { one(n) })
}

// duration reads a duration of at least low.
func (d *decoder) duration(n *node, to *Duration, low Duration) {
	if n.Kind != document.StringKind {
		d.Problem(n, "must be a duration in quotes, is "+n.Kind.String(), `write a number and a unit, such as "90 minutes", "1.5 h" or "2 weeks"`)
		return
	}
	x, err := times.ParseDuration(n.Text)
	switch {
	case errors.Is(err, times.ErrDuration):
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), "units: week, day, hour (h), minute (min, m), second (sec, s)")
	case err != nil:
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), "")
	case x < low:
		d.Problem(n, fmt.Sprintf("must be at least %s, is %s", low, document.Quote(n.Text)), "")
	default:
		*to = x
	}
}

func (d *decoder) instant(n *node, to *Instant) {
	if n.Kind != document.StringKind {
		d.WrongKind(n, "a date and time in quotes")
		return
	}
	x, err := times.ParseInstant(n.Text)
	if err != nil {
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), "")
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
			return fmt.Sprintf("must have at least %d characters, is %s", low, document.Quote(s))
		case n > high:
			return fmt.Sprintf("must have at most %d characters, has %d", high, n)
		case strings.ContainsFunc(s, unicode.IsControl):
			return "must not contain line breaks or control characters"
		}
		return ""
	}
}

// ValidName says whether a job may have a name.
func ValidName(name string) bool { return plain(1, maxNameRunes)(name) == "" }

// word wants letters, digits and _ plus the bytes in also, at most 64 in all.
func word(also string) func(string) string {
	return func(s string) string {
		for i := range len(s) {
			if !document.IsNameByte(s[i]) && strings.IndexByte(also, s[i]) < 0 {
				return fmt.Sprintf("may have letters, digits and %s only, is %s", strings.Join(strings.Split("_"+also, ""), " "), document.Quote(s))
			}
		}
		if s == "" || len(s) > 64 {
			return "must have 1 to 64 characters"
		}
		return ""
	}
}
