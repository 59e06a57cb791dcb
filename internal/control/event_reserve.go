package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Reserve keeps nodes, or some of their GPUs, for some jobs or for nobody, during
// a span of time. GPUs may be named as Drain names them if they are of one node.
// One of the same name is replaced and keeps its ID.
type Reserve struct{ Window sched.Window }

func (e Reserve) apply(c *step) (None, *state.Refusal) {
	if e.Window.End <= c.now {
		return None{}, &state.Refusal{Code: state.Conflict, Path: "end", Message: fmt.Sprintf("reservation %q would end in the past", e.Window.Name)}
	}
	for _, name := range e.Window.Nodes {
		if c.node(name) == nil {
			return None{}, &state.Refusal{Code: state.NotFound, Path: "nodes", Message: fmt.Sprintf("there is no node %q", name), Hint: "nodes here: " + c.nodes.names()}
		}
	}
	if refusal := e.findGPUs(c, &e.Window); refusal != nil {
		return None{}, refusal
	}
	if old, ok := c.queue.sched.Window(e.Window.Name); ok {
		e.Window.ID = old.ID
	}
	if err := c.queue.sched.Reserve(e.Window); err != nil {
		return None{}, &state.Refusal{Code: state.Conflict, Message: err.Error()}
	}
	e.Window, _ = c.queue.sched.Window(e.Window.Name) // what was chosen is kept over restarts
	c.out.record(state.Record{Kind: state.KindWindow, Name: e.Window.Name, Value: state.Encode(e.Window)})
	c.queue.windows = append(slices.DeleteFunc(slices.Clone(c.queue.windows), func(w sched.Window) bool { return w.Name == e.Window.Name }), e.Window)
	c.queue.due = true
	return None{}, nil
}

func (e Reserve) audit(None) Audit {
	w := e.Window
	at := func(t sched.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }
	return Audit{Object: "reservation " + w.Name, Change: fmt.Sprintf("from %s until %s, nodes %s", at(w.Start), at(w.End), strings.Join(w.Nodes, ","))}
}

// findGPUs makes UUIDs of a window's GPUs.
func (e Reserve) findGPUs(c *step, w *sched.Window) *state.Refusal {
	if len(w.GPUs) == 0 {
		return nil
	}
	if len(w.Nodes) != 1 {
		return &state.Refusal{Code: state.Conflict, Path: "gpus", Message: fmt.Sprintf("reservation %q names GPUs of %d nodes", w.Name, len(w.Nodes)),
			Hint: "name the one node that they are on, or say how many GPUs of each node"}
	}
	n, gpus := c.node(w.Nodes[0]), []string(nil)
	for _, text := range w.GPUs {
		uuid, refusal := n.FindGPU(text)
		if refusal != nil {
			refusal.Path = "gpus"
			return refusal
		}
		gpus = append(gpus, uuid)
	}
	w.GPUs = gpus
	return nil
}
