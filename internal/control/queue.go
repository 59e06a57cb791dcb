package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/internal/control/effects"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/predict"
	"gbatch/sched/words"
)

// queue is the scheduler, and what it and others said of when jobs start and
// end. It is due when something changed that a decision may depend on.
type queue struct {
	sched     *sched.State
	due       bool
	plan      *sched.Plan               // of the last round, nil before the first
	planned   sched.Time                // when that was
	promised  map[job.Number]sched.Time // first estimate of jobs that have had one and wait still
	predictor predict.Predictor
	windows   []state.Window // advance reservations, in the order they were made

	ledger *ledger.Ledger
	out    *effects.Output
	cfg    *Config
}

// enqueue gives a queued job to the scheduler. The parent is that of a task, else
// nil. A job of the future, from before the clock was set back, counts as new.
func (q *queue) enqueue(j, parent *state.Job) {
	s := picture.Queued(j, parent)
	s.Submitted = min(s.Submitted, q.out.Now)
	must(q.sched.Enqueue(s)) // checked when it was submitted
	j.Ref, _ = q.sched.Ref(s.ID)
}

func (q *queue) dequeue(n job.Number) {
	delete(q.promised, n)
	q.sched.Dequeue(sched.JobID(n))
}

// start takes in that a job begins to hold what its attempt says.
func (q *queue) start(j *state.Job) {
	if t := q.promised[j.Number]; t > 0 {
		q.out.Missed = append(q.out.Missed, q.out.Now-t)
		delete(q.promised, j.Number)
	}
	must(q.sched.Start(picture.Running(j)))
}

// input is what the scheduler decides and answers by.
func (q *queue) input(now sched.Time) sched.Input {
	in := sched.Input{Now: now, State: q.sched, Shares: q.ledger.SharesOf(now)}
	if q.plan != nil {
		in.Last = q.plan.Reservations
	}
	return in
}

// promise notes when jobs are to start that were not told so before.
func (q *queue) promise(list []sched.Reservation) {
	for _, r := range list {
		if n := job.Number(r.Job); q.promised[n] == 0 && r.At > q.out.Now {
			q.promised[n] = r.At
		}
	}
}

func (q *queue) check(jobs *jobs) error {
	if err := q.sched.Check(); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	for n := range q.promised { // any of them: order does not matter
		if j := jobs.get(n); j == nil || j.State != job.Queued {
			return fmt.Errorf("job %d was promised a start and does not wait for it", n)
		}
	}
	for _, w := range q.windows {
		if known, ok := q.sched.Window(w.Name); !ok || known.ID != w.ID {
			return fmt.Errorf("reservation %s is unknown to the scheduler", w.Name)
		}
	}
	for j := range jobs.all() {
		_, waits := q.sched.Waiting(sched.JobID(j.Number))
		held, runs := q.sched.Running(sched.JobID(j.Number))
		if waits != (j.State == job.Queued && j.Tasks == nil && j.Cron == nil) || runs != j.Holds() {
			return fmt.Errorf("job %d is %s; to the scheduler it waits %t and runs %t", j.Number, j.State, waits, runs)
		}
		if !runs {
			continue
		}
		for i, r := range j.Attempt.Ranks {
			if i >= len(held.Ranks) || held.Ranks[i].MilliCPU != r.Alloc.MilliCPU || held.Ranks[i].MemMiB != r.Alloc.MemMiB {
				return fmt.Errorf("job %d: its rank %d holds %s, and not to the scheduler", j.Number, i, words.Size(r.Alloc))
			}
		}
	}
	return nil
}

// reserve adds a window, or replaces that of the same name, which keeps its ID.
func (q *queue) reserve(w state.Window) error {
	if old, ok := q.sched.Window(w.Name); ok {
		w.ID = old.ID
	}
	if err := q.sched.Reserve(w.Window); err != nil {
		return err
	}
	w.Window, _ = q.sched.Window(w.Name) // what was chosen is kept over restarts
	q.out.Record(state.Record{Kind: state.KindWindow, Name: w.Name}, w)
	q.windows = append(q.otherWindows(w.Name), w)
	q.due = true
	return nil
}

// unreserve removes a window; false if there is none of that name.
func (q *queue) unreserve(name string) bool {
	if !q.sched.Unreserve(name) {
		return false
	}
	q.out.Store(state.Record{Kind: state.KindWindow, Name: name})
	q.windows = q.otherWindows(name)
	q.due = true
	return true
}

// otherWindows is a copy without one: a View may hold the list.
func (q *queue) otherWindows(name string) []state.Window {
	return slices.DeleteFunc(slices.Clone(q.windows), func(w state.Window) bool { return w.Name == name })
}

func (q *queue) loadWindow(r state.Record) error {
	var w state.Window
	if err := json.Unmarshal(r.Value, &w); err != nil {
		return fmt.Errorf("decode reservation record %s: %w", r.Name, err)
	}
	if err := q.sched.Reserve(w.Window); err != nil {
		return err
	}
	q.windows = append(q.windows, w)
	return nil
}

// The run time of a job is predicted when it is submitted, and kept in its
// record, so that a plan is the same after a restart. What the predictor has
// learnt is rebuilt from the ended jobs that are still in the table, which is
// all that it would remember of most users anyway.

// predicts says whether the site wants predictions.
func (q *queue) predicts() bool { return q.cfg.Policy.Estimates == sched.ByPredicted }

// expect is the run time to expect of a new job; 0 if nothing is known.
func (q *queue) expect(j *state.Job) sched.Time {
	if !q.predicts() {
		return 0
	}
	return q.predictor.Predict(picture.Waiting(j))
}

// observe learns from an attempt that ended by itself: finished or failed by its
// own doing. One that was cancelled or lost says nothing about the next.
func (q *queue) observe(j *state.Job) {
	if !q.predicts() && q.cfg.Policy.BoostBacklog == 0 || j.Started == 0 || j.Ended == 0 {
		return
	}
	own := j.State == job.Finished || j.State == job.Failed && j.Reason.Class() != job.Infra
	if own {
		q.predictor.Observe(picture.Waiting(j), max(j.Ended-j.Started, 1))
		q.sched.SetLimitUse(q.predictor.LimitUse())
	}
}
