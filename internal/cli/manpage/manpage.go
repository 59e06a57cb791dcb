// Package manpage writes man pages: of a program, made of what its --help is
// made of, and what pages of documents are written by. It knows no program.
package manpage

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

const word = "--man" // as the only argument: print the man page

// Asked is whether the arguments of a program ask for its man page.
func Asked(args []string) bool { return len(args) == 1 && args[0] == word }

// Program is what a page says beside the commands and flags.
type Program struct {
	Name     string
	Section  int
	Version  string
	About    string
	Examples []string
	Codes    string // what the exit status says
	Environ  []Item
	Files    []Item
	SeeAlso  []string // as gqueue(1)
}

// Item is a name and what it is.
type Item struct{ Name, Text string }

// Write prints a program's page.
func Write(w io.Writer, p Program, m *kong.Application) error {
	r := &Roff{}
	about := strings.TrimSuffix(p.About, ".")
	r.Title(p.Name, p.Section, p.Version, strings.ToLower(about[:1])+about[1:])
	r.Line(".SH SYNOPSIS")
	leaves := m.Leaves(true)
	if len(leaves) == 0 {
		r.Line(`.B %s`, Text(p.Name))
		r.Line("%s", Text(strings.TrimPrefix(m.Summary(), p.Name)))
	}
	for i, n := range leaves {
		if i > 0 {
			r.Line(".br")
		}
		r.Line(`.B %s`, Text(p.Name+" "+n.Path()))
		r.Line("%s", Text(strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))))
	}
	r.Line(".SH DESCRIPTION")
	r.Line("%s", Text(p.About))
	r.values(m.Positional)
	if len(leaves) > 0 {
		r.Line(".SH COMMANDS")
		for _, n := range leaves {
			r.Line(`.SS "%s"`, Text(p.Name+" "+n.Path()))
			r.Line("%s", Text(n.Help))
			r.values(n.Positional)
			r.flags(n.Flags)
		}
	}
	r.Line(".SH OPTIONS")
	r.flags(m.Flags)
	r.Line(".SH EXAMPLES")
	r.Line(".nf")
	for _, e := range p.Examples {
		r.Line("%s", Text(e))
	}
	r.Line(".fi")
	r.Line(".SH EXIT STATUS")
	r.Line("%s", Text(p.Codes))
	r.items("ENVIRONMENT", p.Environ)
	r.items("FILES", p.Files)
	r.SeeAlso(p.SeeAlso)
	_, err := w.Write(r.Bytes())
	return err
}

// Roff is a page that is being written.
type Roff struct{ bytes.Buffer }

// Line writes a line as it is: text in it has to be from Text.
func (r *Roff) Line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

// Title begins a page.
func (r *Roff) Title(name string, section int, version, about string) {
	r.Line(`.TH %s %d "" "gbatch %s" "gbatch"`, strings.ToUpper(name), section, version)
	r.Line(".SH NAME")
	r.Line(`%s \- %s`, Text(name), Text(about))
}

// SeeAlso ends a page with others, which are named as gqueue(1).
func (r *Roff) SeeAlso(pages []string) {
	r.Line(".SH SEE ALSO")
	var out []string
	for _, p := range pages {
		name, section, _ := strings.Cut(p, "(")
		out = append(out, fmt.Sprintf(`\fB%s\fR(%s`, Text(name), section))
	}
	r.Line("%s", strings.Join(out, ", "))
}

func (r *Roff) items(title string, list []Item) {
	if len(list) > 0 {
		r.Line(".SH %s", title)
	}
	for _, i := range list {
		r.item(i.Name, i.Text)
	}
}

func (r *Roff) item(name, text string) {
	r.Line(".TP")
	r.Line(`\fB%s\fR`, Text(name))
	r.Line("%s", Text(text))
}

func (r *Roff) values(list []*kong.Positional) {
	for _, v := range list {
		r.item(v.Summary(), v.Help)
	}
}

func (r *Roff) flags(list []*kong.Flag) {
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
		help := f.Help
		if len(f.Envs) > 0 {
			help += " Environment: " + strings.Join(f.Envs, ", ") + "."
		}
		r.item(name, help)
	}
}

// Text is text in which nothing is a command to the formatter.
func Text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
