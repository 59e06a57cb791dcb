package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/internal/state"
	"gbatch/sched"
)

func (c *Controller) dropWindow(name string) {
	c.out.record(state.Record{Kind: state.KindWindow, Name: name})
	c.queue.windows = slices.DeleteFunc(slices.Clone(c.queue.windows), func(w sched.Window) bool { return w.Name == name })
	c.queue.due = true
}

func (c *Controller) loadWindow(r state.Record) error {
	var w sched.Window
	if err := json.Unmarshal(r.Value, &w); err != nil {
		return fmt.Errorf("decode reservation record %s: %w", r.Name, err)
	}
	if err := c.queue.sched.Reserve(w); err != nil {
		return err
	}
	c.queue.windows = append(c.queue.windows, w)
	return nil
}
