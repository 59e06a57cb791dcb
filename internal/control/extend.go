package control

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/control/amend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// longer says why a job that runs cannot have a longer time limit without an
// operator's word: somebody else was promised what it holds, or is to have it.
// Then a longer limit costs nobody anything, as when no one waits.
func (s *step) longer(j *state.Job, limit sched.Time) *state.Refusal {
	denied := func(format string, args ...any) *state.Refusal {
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf(format, args...), Hint: "ask for less; an operator may raise it all the same"}
	}
	if limit > s.cfg.MaxRun && s.cfg.MaxRun > 0 {
		return denied("job %d would run for %s, and jobs here run for %s at most", j.Number, job.Duration(limit/sched.Second), job.Duration(s.cfg.MaxRun/sched.Second))
	}
	if s.cfg.Policy.Timed() && len(j.Attempt.Ranks[0].Alloc.GPUs) > 0 {
		return denied("the GPU minutes of running jobs are bounded here, and job %d began with fewer", j.Number)
	}
	if broken := s.broken(j, limit); len(broken) > 0 {
		first := broken[0]
		return denied("%s, from %s before job %d would end", first.What, words.Span(endWith(j, limit)-first.At), j.Number)
	}
	return nil
}

// maxTold is of how many promises is told who breaks them.
const maxTold = 3

// late says which promises a job that runs breaks with another time limit, and by how
// much; empty: none.
func (s *step) late(j *state.Job, limit sched.Time) string {
	if j.State != job.Running || j.Attempt == nil || j.Ending != nil || limit <= j.LimitNow() {
		return ""
	}
	var said strings.Builder
	broken := s.broken(j, limit)
	for i, p := range broken {
		switch by := words.Span(endWith(j, limit) - p.At); {
		case i == maxTold:
			fmt.Fprintf(&said, "; and %d more such promises", len(broken)-i)
			return said.String()
		case p.Job == 0:
			fmt.Fprintf(&said, "; %s, from %s before it would end", p.What, by)
		default:
			fmt.Fprintf(&said, "; %s, and may start up to %s later", p.What, by)
		}
	}
	return said.String()
}

// broken is who was promised what a job holds from before it would end with another time
// limit, but not before it would with the one that it has; the first first.
func (s *step) broken(j *state.Job, limit sched.Time) []amend.Promise {
	from, until := endWith(j, j.LimitNow()), endWith(j, limit)
	plan := s.promises()
	out := plan.PromisedLicenses(j, from, until)
	for i, r := range j.Attempt.Ranks {
		node := r.Alloc.Node
		if slices.ContainsFunc(j.Attempt.Ranks[:i], func(o state.Rank) bool { return o.Alloc.Node == node }) {
			continue
		}
		out = append(out, s.windowsOn(node, from, until)...)
		out = append(out, plan.Promised(j.Number, amend.Held(j.Attempt, node), from, until)...)
	}
	return amend.First(out)
}

// endWith is when a job that runs ends at the latest with a time limit.
func endWith(j *state.Job, limit sched.Time) sched.Time {
	if limit != j.LimitNow() {
		j = j.WithLimit(limit)
	}
	return j.Attempt.Start + j.LimitLeft()
}

// windowsOn are the reservations of a node that begin between two moments.
func (s *step) windowsOn(name string, from, until sched.Time) []amend.Promise {
	var out []amend.Promise
	for _, w := range s.queue.windows {
		if next := w.Next(from - 1); next.Start >= from && next.Start < until && slices.Contains(w.Nodes, name) {
			out = append(out, amend.Promise{What: fmt.Sprintf("%s is reserved (%s)", name, w.Name), At: next.Start})
		}
	}
	return out
}

// promises are what the last plan has.
func (s *step) promises() amend.Plan {
	p := amend.Plan{Free: s.freeOn, Job: s.jobs.get}
	if s.queue.plan != nil {
		p.Reservations = s.queue.plan.Reservations
	}
	return p
}
