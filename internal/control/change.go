package control

import (
	"fmt"

	"gbatch/internal/control/depend"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// change puts a changed copy of a job into the table, records it, and writes
// the line of its timeline if there is one.
func (t *jobs) change(old *state.Job, line string, edit func(*state.Job)) *state.Job {
	j := *old
	edit(&j)
	j.Version, j.Shown = j.Version+1, false
	if j.State != old.State {
		if !canMove(old, j.State) {
			panic(fmt.Sprintf("job %d: %v", j.Number, &job.MoveError{From: old.State, To: j.State}))
		}
		j.Since = t.out.Now
		t.moved(old, &j)
		t.out.Move(&j, old.State)
	}
	t.put(old, &j)
	t.watchWarning(&j)
	if j.Parent > 0 {
		t.arrays.TaskChanged(old, &j)
	}
	t.out.Job(&j, old.State, line)
	j.Settle(t.intern)
	return &j
}

// end puts a job that holds nothing into its last state.
func (t *jobs) end(j *state.Job, to job.State, reason job.Reason, text string) *state.Job {
	return t.change(j, text, func(j *state.Job) { j.State, j.Reason, j.Text = to, reason, text })
}

// show changes what is only shown of a job. It is not recorded, as its node says
// it again.
func (t *jobs) show(old *state.Job, edit func(*state.Job)) {
	j := *old
	edit(&j)
	j.Version, j.Shown = j.Version+1, true
	t.put(old, &j)
	t.out.Changed = append(t.out.Changed, j.Number)
}

func canMove(j *state.Job, to job.State) bool {
	if j.Tasks != nil {
		return job.CanMoveParent(j.State, to)
	}
	return job.CanMove(j.State, to)
}

// moved keeps the counts and indexes right when a job changes state.
func (t *jobs) moved(old, j *state.Job) {
	t.queue.due = true
	if !j.State.Pending() {
		t.depends.Drop(old)
	}
	if j.State.Final() || j.State == job.Running {
		t.depends.Notify(j.Number)
	}
	switch {
	case j.Tasks != nil:
	case j.State == job.Queued:
		t.enqueue(j)
	case old.State == job.Queued && !j.State.Active():
		t.queue.dequeue(j.Number)
	}
	if old.State == job.Running {
		delete(t.idle, j.Number)
	}
	if j.Cron != nil {
		t.templates.Changed(t.out.Now)
	}
	if !old.State.Final() && j.State.Final() {
		j.Ended = t.out.Now
		if old.State.Active() && j.Attempt.End > 0 {
			j.Ended = j.Attempt.End // its nodes may have told late
		}
		t.ledger.Ended(j)
		t.queue.observe(j)
		if j.Sealed && !templates.KeepsSealed(j, &t.table) {
			j.Sealed = false
			t.out.Store(state.Record{Kind: state.KindSecret, Job: j.Document()})
		}
	}
}

// add takes a new job in, with a line of its timeline.
func (t *jobs) add(j *state.Job, line string) {
	t.put(nil, j)
	t.depends.Add(j)
	t.depends.AddName(j, &t.table)
	if j.Cron != nil {
		t.templates.Add(j.Number)
		t.templates.FindNext(&t.table)
	}
	switch {
	case j.Tasks != nil:
		t.arrays.Add(j, &t.table)
		t.arrays.Touch(j.Number)
	case j.State == job.Queued:
		t.enqueue(j)
	}
	t.notifyReplaced(j)
	t.out.Job(j, "", line)
	if j.Tasks != nil {
		t.storeTasks(j.Number, j.Tasks) // what is known from the beginning
		t.out.Record(state.Record{Kind: state.KindTasks, Job: j.Number}, &j.Tasks.Array.Tasks)
	}
	t.out.Move(j, "")
	t.queue.due = true
}

// notifyReplaced lets a new job hear of those that it waits for and has itself
// ended, by taking their place.
func (t *jobs) notifyReplaced(j *state.Job) {
	for _, n := range depend.Awaits(j) {
		if a := t.get(n.Job); a.State.Final() || n.Task != nil {
			t.depends.Notify(a.Number)
		}
	}
}

// storeTasks records the blocks that changed, and notifies those who wait for
// tasks: arrays for the ones of their own indexes, jobs for one that was no job yet.
func (t *jobs) storeTasks(n job.Number, tasks *state.Tasks) {
	indexes, blocks := tasks.TakeChanges(n, !t.out.NoRecords)
	t.arrays.TasksChanged(n, indexes)
	if t.depends.AwaitsTask(n, indexes) {
		t.depends.Notify(n)
	}
	t.out.Store(blocks...)
}

// enqueue gives a queued job to the scheduler. Nobody else may have seen j yet.
func (t *jobs) enqueue(j *state.Job) {
	if j.Cron == nil { // a template does not run
		t.queue.enqueue(j, t.get(j.Parent))
	}
}

// enqueueAgain gives a queued job to the scheduler anew, when it is another time
// at which it may start.
func (t *jobs) enqueueAgain(j *state.Job) {
	again := *j
	t.enqueue(&again)
	t.put(j, &again)
	t.queue.due = true
}
