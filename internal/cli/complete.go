package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Suite are the commands that complete their words and print their man pages.
var Suite = []string{"gsubmit", "gqueue", "gcancel", "ginfo", "gacct", "glog", "gexec", "gadm"}

const (
	completeWord    = "--complete" // as the first argument: the words of a command line follow, the last one unfinished
	completeTimeout = time.Second  // a person waits with a finger on the key
	completeMost    = 500          // candidates from the controller
)

// plainWord is what a shell takes as it is. Others choose names of jobs: what a
// shell would act on is never put on somebody's command line.
var plainWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_.@%+/-]+$`)
})

// candidate is a word that could stand there, and what it is.
type candidate struct{ word, about string }

// completer finds out what a word of a command line could be.
type completer struct {
	app  *App
	sort []string // what --sort takes
}

// complete prints what the last of the words could be, one a line, each with a
// tab and a description. It says nothing about what goes wrong: it runs in the
// middle of somebody's typing.
func (c *completer) complete(k *kong.Kong, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	p := newTyped(k.Model.Node, words[:len(words)-1])
	last := words[len(words)-1]
	prefix := ""
	if name, value, has := strings.Cut(last, "="); has && strings.HasPrefix(name, "--") && p.value == nil {
		if f := p.flag(name); f != nil {
			p.value, prefix, last = f.Value, name+"=", value
		}
	}
	if i := strings.LastIndexByte(last, ','); i >= 0 {
		prefix, last = prefix+last[:i+1], last[i+1:]
	}
	for _, w := range c.candidates(p, last) {
		if strings.HasPrefix(w.word, last) && plainWord().MatchString(w.word) {
			fmt.Fprintf(c.app.Out, "%s\t%s\n", prefix+w.word, human.Clean(w.about))
		}
	}
}

// typed is what the words before the last one mean.
type typed struct {
	node  *kong.Node  // the command
	value *kong.Value // of a flag that the last word is; nil: it is none
	place int         // of the last word among the positional arguments
	bare  bool        // after --
	given map[string]string
}

func newTyped(root *kong.Node, words []string) *typed {
	p := &typed{node: root, given: map[string]string{}}
	for _, w := range words {
		switch {
		case w == "=": // bash takes --flag=value apart
		case p.value != nil:
			p.given[p.value.Name], p.value = w, nil
		case w == "--":
			p.bare = true
		case !p.bare && len(w) > 1 && w[0] == '-':
			if f := p.flag(w); f != nil && !f.IsBool() && !strings.Contains(w, "=") {
				p.value = f.Value
			}
		case !p.bare && p.place == 0 && p.child(w) != nil:
			p.node = p.child(w)
		default:
			p.place++
		}
	}
	return p
}

func (p *typed) child(name string) *kong.Node {
	i := slices.IndexFunc(p.node.Children, func(n *kong.Node) bool { return n.Name == name || slices.Contains(n.Aliases, name) })
	if i < 0 {
		return nil
	}
	return p.node.Children[i]
}

// flags are those of the command, of those above it, and of its default.
func (p *typed) flags() []*kong.Flag {
	var out []*kong.Flag
	for n := p.node; n != nil; n = n.Parent {
		out = append(out, n.Flags...)
	}
	if p.node.DefaultCmd != nil {
		out = append(out, p.node.DefaultCmd.Flags...)
	}
	return slices.DeleteFunc(out, func(f *kong.Flag) bool { return f.Hidden })
}

// flag finds --name, --name=value, -n, or the last of several letters.
func (p *typed) flag(word string) *kong.Flag {
	name, long := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	for _, f := range p.flags() {
		if long && f.Name == name || !long && f.Short != 0 && strings.HasSuffix(word, string(f.Short)) {
			return f
		}
	}
	return nil
}

// positional is the argument that the last word is, or nil.
func (p *typed) positional() *kong.Value {
	n := p.node
	if n.DefaultCmd != nil {
		n = n.DefaultCmd
	}
	switch {
	case p.place < len(n.Positional):
		return n.Positional[p.place]
	case len(n.Positional) > 0 && n.Positional[len(n.Positional)-1].IsCumulative():
		return n.Positional[len(n.Positional)-1]
	}
	return nil
}

func (c *completer) candidates(p *typed, last string) (out []candidate) {
	switch {
	case p.value != nil:
		return c.values(p, p.value)
	case strings.HasPrefix(last, "-") && !p.bare:
		for _, f := range p.flags() {
			out = append(out, candidate{"--" + f.Name, f.Help})
		}
		return out
	}
	if p.place == 0 && !p.bare {
		for _, n := range p.node.Children {
			if !n.Hidden {
				out = append(out, candidate{n.Name, n.Help})
			}
		}
	}
	if v := p.positional(); v != nil {
		out = append(out, c.values(p, v)...)
	}
	return out
}

// values are what a flag or an argument can be: it is known by its name, which
// means the same in all commands.
func (c *completer) values(p *typed, v *kong.Value) []candidate {
	if v.Enum != "" {
		return plain(strings.Split(v.Enum, ","))
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	found, err := client.Find(client.Options{Address: p.given["controller"], TokenFile: p.given["token-file"]})
	if err != nil {
		return nil
	}
	c.app.Client = found
	switch v.Name {
	case "id":
		return c.jobWords(ctx)
	case "user", "project", "cluster", "qos", "name":
		return c.usedWords(ctx, v.Name)
	case "nodes", "node", "nodelist", "exclude":
		return c.nodeWords(ctx)
	case "states", "state":
		return plain(job.States)
	case "signal":
		return plain([]string{"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "WINCH"})
	case "sort":
		return plain(c.sort)
	}
	return nil
}

// plain are words that need no explanation.
func plain[T ~string](words []T) (out []candidate) {
	for _, w := range words {
		out = append(out, candidate{string(w), ""})
	}
	return out
}

func (c *completer) jobWords(ctx context.Context) (out []candidate) {
	l, err := c.app.Client.Jobs(ctx, client.JobFilter{Limit: completeMost})
	if err != nil {
		return nil
	}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		out = append(out, candidate{jobs.ID(j), fmt.Sprintf("%s, %s of %s", j.Name, j.State, j.User)})
	}
	return out
}

// usedWords are the users, projects, clusters, QOS or names that jobs have now;
// all projects, since the controller tells them.
func (c *completer) usedWords(ctx context.Context, what string) (out []candidate) {
	if what == "project" {
		s, err := c.app.Client.Status(ctx)
		if err != nil {
			return nil
		}
		return plain(s.Projects)
	}
	seen := map[string]bool{"": true, "0": true}
	l, err := c.app.Client.Jobs(ctx, client.JobFilter{Limit: completeMost})
	if err != nil {
		return nil
	}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		w := map[string]string{"user": j.User, "cluster": strconv.Itoa(j.Cluster), "qos": j.QOS, "name": j.Name}[what]
		if !seen[w] {
			seen[w] = true
			out = append(out, candidate{w, ""})
		}
	}
	return out
}

func (c *completer) nodeWords(ctx context.Context) (out []candidate) {
	info, err := c.app.Client.Cluster(ctx)
	if err != nil {
		return nil
	}
	for i := range info.Nodes {
		n := &info.Nodes[i]
		out = append(out, candidate{n.Name, strings.TrimSuffix(n.State+": "+n.Reason, ": ")})
	}
	return out
}
