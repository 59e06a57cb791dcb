package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// joinDashed has values that begin with a dash, or have one at a comma, be values,
// as getopt does it: "--priority -50" and "-S -gpus,left" become "--priority=-50"
// and "--sort=-gpus,left", which kong understands. A word that is one of the
// command's own long flags is none: then a value was forgotten, and kong says so.
func joinDashed(root *kong.Node, args []string) []string {
	p := &typed{node: root}
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		w := args[i]
		f := p.wanting(w)
		switch {
		case f != nil && i+1 < len(args):
			i++
			if next := args[i]; strings.Contains(next, "-") && !(strings.HasPrefix(next, "--") && p.flag(next) != nil) {
				out = append(out, "--"+f.Name+"="+next)
			} else if out = append(out, w); strings.HasPrefix(next, "--") {
				i-- // it is a flag and may want a value itself
			} else {
				out = append(out, next)
			}
			continue
		case strings.HasPrefix(w, "-"):
		case p.place == 0 && p.child(w) != nil:
			p.node = p.child(w)
		default:
			p.place++
		}
		out = append(out, w)
	}
	return out
}

// wanting is the flag, if the word is one alone, whose value is the next word.
func (p *typed) wanting(word string) *kong.Flag {
	alone := strings.HasPrefix(word, "--") && !strings.Contains(word, "=") || len(word) == 2 && word[0] == '-'
	if f := p.flag(word); alone && f != nil && !f.IsBool() && !f.IsCounter() {
		return f
	}
	return nil
}
