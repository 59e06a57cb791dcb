// Package outlook says when the jobs that wait now would start: under the rules that are
// in force, and under others or with more nodes. It lets the production controller live
// on from a controller's records, twice and beside each other. It is pure.
package outlook

import (
	"maps"
	"slices"
	"strings"

	"gbatch/internal/control"
	"gbatch/internal/sim"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Horizon is how far is looked at most.
const Horizon = 30 * sched.Day

// Question is what to change, of which state.
type Question struct {
	Now     sched.Time
	Records func(take func(state.Record) error) error // all that a controller loads, once
	Rules   control.Config                            // in force
	Silent  func(node string) bool                    // nodes that do not answer now: nothing starts there

	Changed *control.Config // instead of Rules; nil: those
	Set     []string        // rules to change beyond that, see sim.Set
	Add     []string        // nodes that are there too, see sim.AddNodes

	// Part is asked before each part of the work that is not broken off, after the records
	// were read; its error ends it. More says whether there is time to look further; it is
	// asked before each step.
	Part func() error
	More func() bool
}

// Answer is when jobs start.
type Answer struct {
	Until sched.Time // how far both were looked at
	Whole bool       // all jobs that can start have started by then
	Jobs  []Job      // that wait now, tasks of arrays one by one; by number
}

// Job is a job that waits now.
type Job struct {
	ID, User, Project, Name string

	Submitted     sched.Time
	Before, After sched.Time // when it starts as things are, and changed; 0: not by Until
}

// RefusedError is that the controller does not take what is to be changed.
type RefusedError struct{ what, why string }

func (e *RefusedError) Error() string { return e.what + ": " + e.why }

// Check says what is wrong with what is to be changed, as far as that is known without
// the records.
func (q Question) Check() error {
	_, err := q.changed()
	if err == nil {
		_, err = added(nil, q.Add)
	}
	return err
}

func added(nodes []sim.Node, add []string) ([]sim.Node, error) {
	for _, a := range add {
		var err error
		if nodes, err = sim.AddNodes(nodes, a); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// Ask answers a question.
func Ask(q Question) (Answer, error) {
	rules, err := q.changed()
	if err != nil {
		return Answer{}, err
	}
	was, err := newWorld(q.Rules)
	if err != nil {
		return Answer{}, err
	}
	will, err := newWorld(q.Rules)
	if err != nil {
		return Answer{}, err
	}
	err = q.Records(func(r state.Record) error {
		if err := was.c.Load(r); err != nil {
			return err
		}
		return will.c.Load(r)
	})
	if err != nil {
		return Answer{}, err
	}
	for _, w := range []*world{was, will} {
		if err := q.Part(); err != nil {
			return Answer{}, err
		}
		if err := w.begin(q.Now, q.Silent); err != nil {
			return Answer{}, err
		}
	}
	if err := will.change(rules, q.Add); err != nil {
		return Answer{}, err
	}
	for q.More() && !(was.done() && will.done()) {
		// Who is behind goes on: what is not known of one is of no use of the other.
		if !was.done() && (will.done() || was.now <= will.now) {
			was.step()
		} else {
			will.step()
		}
	}
	return compare(was, will), nil
}

// changed is the rules of the question.
func (q Question) changed() (control.Config, error) {
	rules := q.Rules
	if q.Changed != nil {
		rules = *q.Changed
	}
	for _, s := range q.Set {
		if err := sim.Set(&rules, s); err != nil {
			return rules, err
		}
	}
	return rules, nil
}

func compare(was, will *world) Answer {
	out := Answer{Until: min(was.until(), will.until()), Whole: was.done() && will.done()}
	jobs := map[string]Job{}
	for _, w := range []*world{was, will} {
		for id, j := range w.jobs {
			jobs[id] = j.Job
		}
	}
	for id, j := range jobs {
		j.Before, j.After = was.startOf(id, out.Until), will.startOf(id, out.Until)
		jobs[id] = j
	}
	out.Jobs = slices.SortedFunc(maps.Values(jobs), func(a, b Job) int {
		return compareIDs(a.ID, b.ID)
	})
	return out
}

// compareIDs puts 9 before 10, and 10_2 before 10_10.
func compareIDs(a, b string) int {
	a1, a2, _ := strings.Cut(a, "_")
	b1, b2, _ := strings.Cut(b, "_")
	if c := len(a1) - len(b1); c != 0 {
		return c
	}
	if c := strings.Compare(a1, b1); c != 0 {
		return c
	}
	if c := len(a2) - len(b2); c != 0 {
		return c
	}
	return strings.Compare(a2, b2)
}

func refused(what string, r *state.Refusal) error {
	if r == nil {
		return nil
	}
	return &RefusedError{what, r.Message}
}
