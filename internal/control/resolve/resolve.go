// Package resolve finds the jobs that a new one shall wait for, by what it names. It is
// pure, and changes nothing.
package resolve

import (
	"fmt"
	"slices"

	"gbatch/internal/control/array"
	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Asked is the new job, and what there is.
type Asked struct {
	Now   sched.Time
	Spec  *job.Spec
	User  string
	Next  job.Number            // that it is to have
	Tasks *state.Tasks          // of it, nil if it has none
	Past  map[string]*state.Job // jobs that have left the table, by what they are named here

	Jobs    *state.Table
	Depends *depend.Set
	Arrays  *array.Set
}

// Resolved is what a new job shall wait for.
type Resolved struct {
	Asked
	Waits  *state.Waits // nil: for nothing
	Each   []*state.Job // arrays whose tasks its own wait for one by one
	Absent []string     // jobs that Past should have had
	missed []string     // conditions that cannot come true any more, in words
}

// New finds the jobs that a new job shall wait for. Some may have left the table
// without being in Past: these are in Absent then. Why is set when what it waits for
// can no longer happen.
func New(a Asked) (r *Resolved, why string, refusal *state.Refusal) {
	r = &Resolved{Asked: a}
	g := a.Spec.Gbatch
	if g == nil || len(g.Dependencies) == 0 {
		return r, "", nil
	}
	r.Waits = &state.Waits{Any: g.DependOnAny}
	for i, d := range g.Dependencies {
		if d.Type == job.Singleton {
			if n := a.Depends.Earlier(a.Spec.Name, a.User, a.Next, a.Jobs); n != 0 {
				r.Waits.Needs = append(r.Waits.Needs, state.Need{Type: d.Type, Job: n})
			} else if g.DependOnAny {
				r.Waits.Met = true
			}
			continue
		}
		for k, id := range d.Jobs {
			if refusal := r.one(d, id); refusal != nil {
				refusal.Path = fmt.Sprintf("gbatch.dependencies[%d].jobs[%d]", i, k)
				return nil, "", refusal
			}
		}
	}
	w := r.Waits
	switch {
	case len(r.Absent) > 0:
		return r, "", nil
	case len(w.Needs) > depend.MaxNeeds:
		return nil, "", &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.dependencies", Message: fmt.Sprintf("names %d jobs, at most %d are allowed", len(w.Needs), depend.MaxNeeds)}
	case len(r.Each) > array.MaxAwaited:
		return nil, "", &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.dependencies", Message: fmt.Sprintf("%s names %d arrays, at most %d are allowed", job.AfterCorr, len(r.Each), array.MaxAwaited)}
	case !w.Any && len(r.missed) > 0 || w.Any && !w.Met && len(w.Needs) == 0 && len(r.missed) > 0:
		r.Waits, r.Each = &state.Waits{Any: w.Any}, nil
		return r, r.missed[0], nil
	}
	w.Met = w.Met || len(w.Needs) == 0
	if w.Met && w.Any && w.Since <= a.Now {
		w.Needs = nil
	}
	return r, "", nil
}

// Fit puts the arrays whose tasks are awaited one by one into the new job.
func (r *Resolved) Fit() {
	if len(r.Each) == 0 {
		return
	}
	w := *r.Waits
	for i, q := range r.Each {
		if now := r.Jobs.Get(q.Number); now != nil {
			r.Each[i], q = now, now // it may have been replaced
		}
		if !q.State.Final() && !slices.Contains(w.Tasks, q.Number) {
			w.Tasks = append(w.Tasks, q.Number)
		}
	}
	r.Waits = &w
	array.MissNew(r.Tasks, r.Each)
}

// one takes in one job that is named.
func (r *Resolved) one(d job.Dependency, id string) *state.Refusal {
	j, refusal := r.awaited(id)
	if refusal != nil || j == nil {
		return refusal
	}
	if d.Type == job.AfterCorr && (r.Tasks != nil || j.Tasks != nil) {
		refusal := r.Arrays.Refuse(r.Tasks, j, id, r.Waits.Any)
		r.Each = append(r.Each, j)
		return refusal
	}
	n := state.Need{Type: d.Type, Job: j.Number, Delay: sched.Time(d.Delay) * 1000}
	if j.Number == 0 { // a task that is no job
		index := j.Index
		n.Job, n.Task = j.Parent, &index
	}
	switch o, at := depend.Judge(n, r.Now, j); o {
	case depend.Undecided:
		r.Waits.Needs = append(r.Waits.Needs, n)
	case depend.Met:
		if r.Waits.Since = max(r.Waits.Since, at); r.Waits.Any {
			r.Waits.Met, r.Waits.Since = true, at
		}
	case depend.Impossible:
		r.missed = append(r.missed, n.Missed(j))
	}
	return nil
}

// awaited finds a job that another names, in the table or among those of the
// past. Those that should be among these are noted as absent. A task that is no job has no
// number.
func (r *Resolved) awaited(id string) (*state.Job, *state.Refusal) {
	v := state.View{Jobs: *r.Jobs}
	j, refusal := v.Find(id)
	if refusal != nil && refusal.Code != state.NotFound {
		return nil, refusal
	}
	if j == nil {
		var brought bool
		if j, brought = r.Past[id]; !brought {
			r.Absent = append(r.Absent, id)
			return nil, nil
		}
	}
	if j != nil && j.State == job.Halted {
		return r.awaited(fmt.Sprint(j.Next)) // who continues it counts
	}
	if j == nil {
		return nil, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no job %s to wait for", id),
			Hint: "gqueue --all lists jobs with their numbers; a job must be submitted before others can wait for it"}
	}
	return j, nil
}
