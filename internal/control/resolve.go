package control

import (
	"fmt"
	"slices"

	"gbatch/internal/control/array"
	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// resolved is what a new job shall wait for.
type resolved struct {
	now    sched.Time
	event  Submit
	tasks  *state.Tasks // of the new job, nil if it has none
	waits  *state.Waits // nil: for nothing
	each   []*state.Job // arrays whose tasks its own wait for one by one
	past   []string     // jobs that the event should have brought
	missed []string     // conditions that cannot come true any more, in words
}

// resolve finds the jobs that a new job shall wait for. Some may have left
// the table without the event bringing them: these are in past then. Why is set
// when what it waits for can no longer happen.
func (e Submit) resolve(s *step, tasks *state.Tasks) (r *resolved, why string, refusal *state.Refusal) {
	r = &resolved{now: s.now, event: e, tasks: tasks}
	g := e.Spec.Gbatch
	if g == nil || len(g.Dependencies) == 0 {
		return r, "", nil
	}
	r.waits = &state.Waits{Any: g.DependOnAny}
	for i, d := range g.Dependencies {
		if d.Type == job.Singleton {
			if n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table); n != 0 {
				r.waits.Needs = append(r.waits.Needs, state.Need{Type: d.Type, Job: n})
			} else if g.DependOnAny {
				r.waits.Met = true
			}
			continue
		}
		for k, id := range d.Jobs {
			if refusal := r.resolveOne(s, d, id); refusal != nil {
				refusal.Path = fmt.Sprintf("gbatch.dependencies[%d].jobs[%d]", i, k)
				return nil, "", refusal
			}
		}
	}
	w := r.waits
	switch {
	case len(r.past) > 0:
		return r, "", nil
	case len(w.Needs) > depend.MaxNeeds:
		return nil, "", &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.dependencies", Message: fmt.Sprintf("names %d jobs, at most %d are allowed", len(w.Needs), depend.MaxNeeds)}
	case len(r.each) > array.MaxAwaited:
		return nil, "", &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.dependencies", Message: fmt.Sprintf("%s names %d arrays, at most %d are allowed", job.AfterCorr, len(r.each), array.MaxAwaited)}
	case !w.Any && len(r.missed) > 0 || w.Any && !w.Met && len(w.Needs) == 0 && len(r.missed) > 0:
		r.waits, r.each = &state.Waits{Any: w.Any}, nil
		return r, r.missed[0], nil
	}
	w.Met = w.Met || len(w.Needs) == 0
	if w.Met && w.Any && w.Since <= s.now {
		w.Needs = nil
	}
	return r, "", nil
}

// fit puts the arrays whose tasks are awaited one by one into the new job.
func (r *resolved) fit(s *step) {
	if len(r.each) == 0 {
		return
	}
	w := *r.waits
	for i, q := range r.each {
		if now := s.jobs.get(q.Number); now != nil {
			r.each[i], q = now, now // it may have been replaced
		}
		if !q.State.Final() && !slices.Contains(w.Tasks, q.Number) {
			w.Tasks = append(w.Tasks, q.Number)
		}
	}
	r.waits = &w
	array.MissNew(r.tasks, r.each)
}

// resolveOne takes in one job that is named.
func (r *resolved) resolveOne(s *step, d job.Dependency, id string) *state.Refusal {
	j, refusal := r.awaited(s, id, r.event.Past, &r.past)
	if refusal != nil || j == nil {
		return refusal
	}
	if d.Type == job.AfterCorr && (r.tasks != nil || j.Tasks != nil) {
		refusal := s.arrays.Refuse(r.tasks, j, id, r.waits.Any)
		r.each = append(r.each, j)
		return refusal
	}
	n := state.Need{Type: d.Type, Job: j.Number, Delay: sched.Time(d.Delay) * 1000}
	if j.Number == 0 { // a task that is no job
		index := j.Index
		n.Job, n.Task = j.Parent, &index
	}
	switch o, at := depend.Judge(n, r.now, j); o {
	case depend.Undecided:
		r.waits.Needs = append(r.waits.Needs, n)
	case depend.Met:
		if r.waits.Since = max(r.waits.Since, at); r.waits.Any {
			r.waits.Met, r.waits.Since = true, at
		}
	case depend.Impossible:
		r.missed = append(r.missed, n.Missed(j))
	}
	return nil
}

// awaited finds a job that another names, in the table or among those of the
// past that the event brings. Those that it should bring are added to past. A
// task that is no job has no number.
func (r *resolved) awaited(s *step, id string, known map[string]*state.Job, past *[]string) (*state.Job, *state.Refusal) {
	v := state.View{Jobs: s.jobs.table}
	j, refusal := v.Find(id)
	if refusal != nil && refusal.Code != state.NotFound {
		return nil, refusal
	}
	if j == nil {
		var brought bool
		if j, brought = known[id]; !brought {
			*past = append(*past, id)
			return nil, nil
		}
	}
	if j != nil && j.State == job.Halted {
		return r.awaited(s, fmt.Sprint(j.Next), known, past) // who continues it counts
	}
	if j == nil {
		return nil, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no job %s to wait for", id),
			Hint: "gqueue --all lists jobs with their numbers; a job must be submitted before others can wait for it"}
	}
	return j, nil
}

// replace cancels the user's earlier jobs of the name and project of one that
// takes their place, and lets it wait until they are over.
func (e Submit) replace(s *step, waits *state.Waits) *state.Waits {
	for n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table); n != 0; n = s.depends.Earlier(e.Spec.Name, e.User, n, &s.jobs.table) {
		if j := s.jobs.get(n); j.Owner.Project == e.Project {
			Act{Action: Cancel, By: e.User}.cancel(s, j)
		}
	}
	n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table)
	if n == 0 {
		return waits
	}
	w := &state.Waits{}
	if waits != nil {
		*w = *waits
	}
	w.Needs, w.Met = append(w.Needs[:len(w.Needs):len(w.Needs)], state.Need{Type: job.Singleton, Job: n}), false
	return w
}
