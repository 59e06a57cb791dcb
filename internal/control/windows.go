package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/internal/state"
	"gbatch/sched"
)

// reserve adds a window, or replaces that of the same name, which keeps its ID.
func (q *queue) reserve(w sched.Window) error {
	if old, ok := q.sched.Window(w.Name); ok {
		w.ID = old.ID
	}
	if err := q.sched.Reserve(w); err != nil {
		return err
	}
	w, _ = q.sched.Window(w.Name) // what was chosen is kept over restarts
	q.out.record(state.Record{Kind: state.KindWindow, Name: w.Name}, w)
	q.windows = append(q.otherWindows(w.Name), w)
	q.due = true
	return nil
}

// unreserve removes a window; false if there is none of that name.
func (q *queue) unreserve(name string) bool {
	if !q.sched.Unreserve(name) {
		return false
	}
	q.out.store(state.Record{Kind: state.KindWindow, Name: name})
	q.windows = q.otherWindows(name)
	q.due = true
	return true
}

// otherWindows is a copy without one: a View may hold the list.
func (q *queue) otherWindows(name string) []sched.Window {
	return slices.DeleteFunc(slices.Clone(q.windows), func(w sched.Window) bool { return w.Name == name })
}

func (q *queue) loadWindow(r state.Record) error {
	var w sched.Window
	if err := json.Unmarshal(r.Value, &w); err != nil {
		return fmt.Errorf("decode reservation record %s: %w", r.Name, err)
	}
	if err := q.sched.Reserve(w); err != nil {
		return err
	}
	q.windows = append(q.windows, w)
	return nil
}
