package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

const manWord = "--man" // as the only argument: print the man page

// writeMan prints a command's man page, made of what its --help is made of.
func writeMan(w io.Writer, p Program, m *kong.Application) error {
	r := &roff{}
	r.line(`.TH %s 1 "" "gbatch %s" "gbatch"`, strings.ToUpper(p.Name), Version)
	r.line(".SH NAME")
	about := strings.TrimSuffix(p.About, ".")
	r.line(`%s \- %s`, p.Name, roffText(strings.ToLower(about[:1])+about[1:]))
	r.line(".SH SYNOPSIS")
	leaves := m.Leaves(true)
	if len(leaves) == 0 {
		r.line(`.B %s`, roffText(p.Name))
		r.line("%s", roffText(strings.TrimPrefix(m.Summary(), p.Name)))
	}
	for i, n := range leaves {
		if i > 0 {
			r.line(".br")
		}
		r.line(`.B %s`, roffText(p.Name+" "+n.Path()))
		r.line("%s", roffText(strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))))
	}
	r.line(".SH DESCRIPTION")
	r.line("%s", roffText(p.About))
	r.values(m.Positional)
	if len(leaves) > 0 {
		r.line(".SH COMMANDS")
		for _, n := range leaves {
			r.line(`.SS "%s"`, roffText(p.Name+" "+n.Path()))
			r.line("%s", roffText(n.Help))
			r.values(n.Positional)
			r.flags(n.Flags)
		}
	}
	r.line(".SH OPTIONS")
	r.flags(m.Flags)
	r.line(".SH EXAMPLES")
	r.line(".nf")
	for _, e := range p.Examples {
		r.line("%s", roffText(e))
	}
	r.line(".fi")
	r.line(".SH EXIT STATUS")
	r.line("%s", roffText(p.codes()))
	r.line(".SH ENVIRONMENT")
	r.item("GBATCH_CONTROLLER", "The controller's address.")
	r.item("GBATCH_TOKEN, GBATCH_TOKEN_FILE", "Your token, or the file that holds it.")
	r.item("GBATCH_AUTH", "token or munge.")
	r.item("NO_COLOR", "No colours on a terminal.")
	r.line(".SH FILES")
	r.item("/etc/gbatch/client.yaml, ~/.config/gbatch/client.yaml", "Where the controller is.")
	r.line(".SH SEE ALSO")
	var others []string
	for _, c := range Suite {
		if c != p.Name {
			others = append(others, fmt.Sprintf(`\fB%s\fR(1)`, c))
		}
	}
	r.line("%s", strings.Join(others, ", "))
	_, err := w.Write(r.Bytes())
	return err
}

// roff is a page that is being written.
type roff struct{ bytes.Buffer }

func (r *roff) line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

func (r *roff) item(name, text string) {
	r.line(".TP")
	r.line(`\fB%s\fR`, roffText(name))
	r.line("%s", roffText(text))
}

func (r *roff) values(list []*kong.Positional) {
	for _, v := range list {
		r.item(v.Summary(), v.Help)
	}
}

func (r *roff) flags(list []*kong.Flag) {
	for _, f := range list {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() && !f.IsCounter() {
			name += "=" + f.FormatPlaceHolder()
		}
		r.item(name, f.Help)
	}
}

// roffText is text in which nothing is a command to the formatter.
func roffText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
