package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/times"
)

// Dependency makes a job wait for others.
type Dependency struct {
	Type  string   `json:"type"`            // one of DependencyTypes
	Jobs  []string `json:"jobs,omitempty"`  // numbers, tasks as 12_3, or UUIDs; none with singleton
	Delay Duration `json:"delay,omitempty"` // with after: this long after they began
}

// The types of dependencies. Each is about all of Jobs; a job that is an array
// stands for all of its tasks.
const (
	After      = "after"      // have begun, or were cancelled before
	AfterOK    = "afterok"    // have finished well
	AfterNotOK = "afternotok" // have failed or were cancelled
	AfterAny   = "afterany"   // have ended
	AfterCorr  = "aftercorr"  // task by task: the task of the same index has finished well
	Singleton  = "singleton"  // no earlier job of the same name and user is left
)

// dependencyTypes lists the types.
var dependencyTypes = []string{After, AfterOK, AfterNotOK, AfterAny, AfterCorr, Singleton}

const maxDependencies = 1000

var dependencyFields = []field[Dependency]{
	{"type", func(d *decoder, n *node, p *Dependency) { d.str(n, &p.Type, oneOf(dependencyTypes...)) }, true},
	{"jobs", func(d *decoder, n *node, p *Dependency) {
		d.elements(n, maxDependencies, func(_ int, n *node) { p.Jobs = append(p.Jobs, d.jobID(n)) })
	}, false},
	{"delay", func(d *decoder, n *node, p *Dependency) { d.duration(n, &p.Delay, 1) }, false},
}

// jobID reads a number, or a string that names a job or task.
func (d *decoder) jobID(n *node) string {
	switch {
	case n.Kind == document.NumberKind:
		var x int
		d.integer(n, &x, 1, 1<<53)
		return fmt.Sprint(x)
	case n.Kind == document.StringKind && isJobID(n.Text):
		return strings.Clone(n.Text)
	case n.Kind == document.StringKind:
		d.Problem(n, fmt.Sprintf("is %s, which is no job", document.Quote(n.Text)), "write a job's number, a task as 12_3, or a UUID")
	default:
		d.WrongKind(n, "a number or a string")
	}
	return ""
}

func isJobID(s string) bool {
	number, task, isTask := strings.Cut(s, "_")
	digits := func(s string) bool { return s != "" && len(s) < 18 && strings.Trim(s, "0123456789") == "" }
	return digits(number) && (!isTask || digits(task)) || IsUUID(s)
}

// readDependencies reads an array of objects, or Slurm's text.
func readDependencies(d *decoder, n *node, g *Gbatch) {
	if n.Kind == document.StringKind {
		deps, any, err := ParseDependencies(n.Text)
		if err != nil {
			d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), DependencyHint)
			return
		}
		g.Dependencies, g.DependOnAny = deps, any
		return
	}
	d.elements(n, maxDependencies, func(_ int, n *node) {
		var p Dependency
		if !document.Object(d, n, dependencyFields, &p) {
			return
		}
		if message := p.wrong(); message != "" && p.Type != "" {
			d.Problem(n, message, "")
		}
		g.Dependencies = append(g.Dependencies, p)
	})
}

func (p Dependency) wrong() string {
	switch {
	case p.Type == Singleton && len(p.Jobs) > 0:
		return "singleton names no jobs: it is about jobs of the same name and user"
	case p.Type != Singleton && len(p.Jobs) == 0:
		return p.Type + " needs the jobs to wait for"
	case p.Delay > 0 && p.Type != After:
		return "a delay is possible with after only"
	}
	return ""
}

// DependencyHint says how dependencies are written.
const DependencyHint = `write "afterok:12:13,afterany:14"; with ? instead of , one of them is enough`

// ParseDependencies reads Slurm's form, as "afterok:12:13,after:14+30" (all of
// them) or "afterok:12?afterany:13" (any). The number behind a + is minutes.
func ParseDependencies(text string) (deps []Dependency, any bool, err error) {
	sep := ","
	if any = strings.Contains(text, "?"); any {
		if sep = "?"; strings.Contains(text, ",") {
			return nil, false, errors.New("has both , (all of them) and ? (one of them)")
		}
	}
	total := 0
	for part := range strings.SplitSeq(text, sep) {
		parts := strings.Split(part, ":")
		if total += len(parts); total > maxDependencies {
			return nil, false, fmt.Errorf("has more than %d types and jobs", maxDependencies)
		}
		p := Dependency{Type: parts[0]}
		if message := oneOf(dependencyTypes...)(p.Type); message != "" {
			return nil, false, errors.New("type " + message)
		}
		for _, id := range parts[1:] {
			id, delay, delayed := strings.Cut(id, "+")
			if !isJobID(id) {
				return nil, false, fmt.Errorf("%s is no job", document.Quote(id))
			}
			var minutes int
			if delayed {
				if minutes, err = strconv.Atoi(delay); err != nil || minutes < 1 || minutes > int(times.MaxDuration/60) {
					return nil, false, fmt.Errorf("%s is no number of minutes", document.Quote(delay))
				}
			}
			if d := Duration(minutes) * 60; d != p.Delay && len(p.Jobs) > 0 { // jobs with another delay are a dependency of their own
				deps = append(deps, p)
				p = Dependency{Type: p.Type}
			}
			p.Jobs, p.Delay = append(p.Jobs, id), Duration(minutes)*60
		}
		if message := p.wrong(); message != "" {
			return nil, false, errors.New(message)
		}
		deps = append(deps, p)
	}
	return deps, any, nil
}
