package partition

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// Asked is what of a job decides in which partitions it may start.
type Asked struct {
	Names        []string // the partitions that the job names; empty: any will do
	Project, QOS string
	Operator     bool       // the user is an operator, to whom no partition is closed
	Closed       []string   // partitions that are for other users
	Limit        sched.Time // the time limit that the job asks for; 0: none
	Usual        sched.Time // the time limit of a job that asks for none, in a partition without a default of its own
	Shape        *sched.Shape
	Known        []string // the partitions that nodes say they are in; nil: no node has said anything yet; empty: nodes have, and named none
}

// Chosen is the partitions that a job may start in, and its time limit.
type Chosen struct {
	Names []string
	Limit sched.Time // 0: the job names no partition
	Left  []string   // why other partitions that the job names do not take it
}

// Choose says in which partitions a job may start. Of those that it names, ones that
// never take such a job are left out, as long as there is another. The time limit is
// that of the first where it asks for none. Where a site has no partitions at all any
// name is left out: files come from sites that have.
func (l List) Choose(a Asked) (Chosen, *state.Refusal) {
	if len(a.Names) > 0 && len(l) == 0 && a.Known != nil && len(a.Known) == 0 {
		return Chosen{Left: []string{fmt.Sprintf("this site has no partitions, so that %s is all of it", strings.Join(a.Names, ", "))}}, nil
	}
	if r := l.unknown(a); r != nil {
		return Chosen{}, r
	}
	names := a.Names
	if len(names) == 0 {
		if names = l.unnamed(a); len(names) == 0 {
			return Chosen{}, nil
		}
	}
	c := Chosen{Limit: a.Limit}
	for _, name := range names {
		p := l.get(name)
		if p == nil {
			p = &Partition{Name: name}
		}
		if slices.Contains(c.Names, name) {
			continue
		}
		limit := c.Limit
		if limit == 0 {
			limit = p.usual(a.Usual)
		}
		if why := p.refuses(a, limit); why != "" {
			c.Left = append(c.Left, fmt.Sprintf("partition %s %s", name, why))
			continue
		}
		c.Names, c.Limit = append(c.Names, name), limit
	}
	if len(c.Names) > 0 {
		if len(a.Names) == 0 {
			c.Left = nil // it has not asked for them
		}
		for i := range c.Left {
			c.Left[i] += ": the job starts in another"
		}
		return c, nil
	}
	return Chosen{}, &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.partitions", Message: strings.Join(c.Left, "; "), Hint: l.hint(a, names)}
}

// unnamed are the partitions of a job that names none: the default, or if there is
// none, or the job names a cluster, all.
func (l List) unnamed(a Asked) (names []string) {
	if p := l.ofUnnamed(); p != nil && a.Shape.Cluster == 0 {
		return []string{p.Name}
	}
	for _, p := range l {
		names = append(names, p.Name)
	}
	return names
}

func (l List) unknown(a Asked) *state.Refusal {
	for i, name := range a.Names {
		if l.get(name) != nil || slices.Contains(a.Known, name) || a.Known == nil && len(l) == 0 {
			continue
		}
		var there []string
		for _, p := range l {
			there = append(there, p.Name)
		}
		for _, name := range a.Known {
			if !slices.Contains(there, name) {
				there = append(there, name)
			}
		}
		return &state.Refusal{Code: state.NotFound, Path: fmt.Sprintf("gbatch.partitions[%d]", i), Message: fmt.Sprintf("there is no partition %q", name), Hint: "partitions here: " + strings.Join(there, ", ")}
	}
	return nil
}

// usual is the time limit of jobs that ask for none.
func (p *Partition) usual(site sched.Time) sched.Time {
	limit := site
	if p.DefaultRun > 0 {
		limit = p.DefaultRun
	}
	if p.MaxRun > 0 {
		limit = min(limit, p.MaxRun)
	}
	return limit
}

// refuses says why the partition never takes such a job, in words behind its name;
// empty: it does.
func (p *Partition) refuses(a Asked, limit sched.Time) string {
	if !a.Operator {
		if why := p.keepsOut(a); why != "" {
			return why
		}
	}
	s := a.Shape
	switch ranks := s.Ranks(); {
	case p.MaxRun > 0 && limit > p.MaxRun:
		return fmt.Sprintf("runs jobs for %s at most, and this one asks for %s", length(p.MaxRun), length(limit))
	case p.MaxNodes > 0 && ranks > p.MaxNodes:
		return fmt.Sprintf("takes jobs on %s at most, and this one asks for %d", words.Plural(p.MaxNodes, "node"), ranks)
	case ranks < p.MinNodes:
		return fmt.Sprintf("takes jobs on %s at least, and this one asks for %d", words.Plural(p.MinNodes, "node"), ranks)
	case p.MaxMilliGPU > 0 && gpus(s) > p.MaxMilliGPU:
		return fmt.Sprintf("gives a job %s at most, and this one asks for %s", counted(p.MaxMilliGPU, "GPU"), words.Thousandths(gpus(s)))
	case p.MaxMilliCPU > 0 && s.Most(cores) > p.MaxMilliCPU:
		return fmt.Sprintf("gives a job %s of a node at most, and this one asks for %s", counted(p.MaxMilliCPU, "core"), words.Thousandths(s.Most(cores)))
	case p.MaxMiB > 0 && s.Most(memory) > p.MaxMiB:
		return fmt.Sprintf("gives a job %s GiB of a node's memory at most, and this one asks for %s", words.GiB(p.MaxMiB), words.GiB(s.Most(memory)))
	case s.Exclusive && p.MaxMilliCPU+p.MaxMiB+p.MaxMilliGPU > 0, s.AllMem && p.MaxMiB > 0, s.AllGPUs && p.MaxMilliGPU > 0:
		return "bounds what a job may have of a node, and this one asks for all of it"
	}
	return ""
}

// keepsOut says whom or what the partition is for instead.
func (p *Partition) keepsOut(a Asked) string {
	class := "jobs without a class of service"
	if a.QOS != "" {
		class = "class of service " + a.QOS
	}
	because := ""
	if p.Reason != "" {
		because = ": " + p.Reason
	}
	switch {
	case p.State == Drain || p.State == Inactive:
		return "takes no more jobs" + because
	case len(p.Projects) > 0 && !slices.Contains(p.Projects, a.Project):
		return "is for projects " + strings.Join(p.Projects, ", ")
	case slices.Contains(p.NotProjects, a.Project):
		return "is not for project " + a.Project
	case len(p.QOS) > 0 && !slices.Contains(p.QOS, a.QOS):
		return "is for classes of service " + strings.Join(p.QOS, ", ")
	case slices.Contains(p.NotQOS, a.QOS):
		return "is not for " + class
	case slices.Contains(a.Closed, p.Name):
		return "is for other users"
	}
	return ""
}

// hint names a partition that takes the job as it is.
func (l List) hint(a Asked, tried []string) string {
	var takes []string
	for i := range l {
		p := &l[i]
		limit := a.Limit
		if limit == 0 {
			limit = p.usual(a.Usual)
		}
		if !slices.Contains(tried, p.Name) && p.refuses(a, limit) == "" {
			takes = append(takes, p.Name)
		}
	}
	if len(takes) > 0 {
		return "as it is, the job is taken by: " + strings.Join(takes, ", ")
	}
	return "change what it asks for, or ask an operator; ginfo --partitions shows what each takes"
}

func gpus(s *sched.Shape) int64 {
	return s.Total(func(s *sched.Shape) int64 { return s.MilliGPU }) + s.RestMilliGPU
}

func cores(s *sched.Shape) int64  { return s.MilliCPU }
func memory(s *sched.Shape) int64 { return s.MemMiB }

func length(t sched.Time) string { return job.Duration(t / sched.Second).String() }

func counted(milli int64, noun string) string {
	if milli == 1000 {
		return "1 " + noun
	}
	return words.Thousandths(milli) + " " + noun + "s"
}
