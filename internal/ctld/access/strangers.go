package access

import (
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"gbatch/internal/ctld/site"
)

const (
	askAtOnce     = 100 // names in one question to a directory service
	mostStrangers = 8   // names in one sentence
)

// Strangers says of which users and groups that the rules name this machine does
// not know. A group that is not there has nobody in it; a user without an account
// can still come by a token, so neither is an error. Where a directory service
// does not answer, nothing is said.
func (p *People) Strangers(c site.Config) []string { return p.StrangersIn(c.People()) }

// StrangersIn are those of some lists.
func (p *People) StrangersIn(lists []site.Named) (out []string) {
	for _, list := range lists {
		if gone := p.unknown("group", list.Groups); len(gone) > 0 {
			out = append(out, fmt.Sprintf("%s: nobody is in %s, which this machine does not know as groups", list.Path, some(gone)))
		}
		if gone := p.unknown("passwd", list.Users); len(gone) > 0 {
			out = append(out, fmt.Sprintf("%s: this machine has no account of %s, who can come by tokens alone", list.Path, some(gone)))
		}
	}
	return out
}

// some names a few.
func some(names []string) string {
	if more := len(names) - mostStrangers; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostStrangers], ", "), more)
	}
	return strings.Join(names, ", ")
}

// unknown are those of the names that a table of the machine does not have.
func (p *People) unknown(table string, names []string) []string {
	var left []string
	for _, name := range names {
		err := errors.ErrUnsupported
		if table == "group" {
			_, err = user.LookupGroup(name)
		} else {
			_, err = user.Lookup(name)
		}
		if err != nil {
			left = append(left, name)
		}
	}
	var gone []string
	for batch := range slices.Chunk(left, askAtOnce) {
		out, err := p.ask("getent", append([]string{table, "--"}, batch...)...)
		if err != nil && !noSuchEntry(err) && !noSuchProgram(err) {
			return nil
		}
		known := map[string]bool{}
		for line := range strings.Lines(out) {
			name, _, _ := strings.Cut(line, ":")
			known[name] = true
		}
		for _, name := range batch {
			if !known[name] {
				gone = append(gone, name)
			}
		}
	}
	return gone
}
