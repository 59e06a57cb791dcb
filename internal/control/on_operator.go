package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Drain takes a node, or one GPU of it, out of scheduling; what runs there goes
// on. An empty Reason puts it back. The answer is nil or *Refusal.
type Drain struct {
	Node   string
	GPU    string // UUID, or its beginning, or index; empty: the node
	Reason string
	By     string
}

func (e Drain) apply(c *Controller, _ sched.Time) any {
	old := c.node(e.Node)
	if old == nil {
		return &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no node %q", e.Node), Hint: "nodes here: " + c.nodeNames()}
	}
	n := *old
	reason := e.Reason
	if reason != "" && e.By != "" {
		reason += " (" + e.By + ")"
	}
	if e.GPU == "" {
		n.Drained = reason
		if reason == "" {
			n.Trouble = nil // the operator says that it is fit
		}
		c.setNode(n)
		return nil
	}
	uuid, refusal := old.FindGPU(e.GPU)
	if refusal != nil {
		return refusal
	}
	n.DrainedGPUs = maps.Clone(old.DrainedGPUs)
	if n.DrainedGPUs == nil {
		n.DrainedGPUs = map[string]string{}
	}
	if reason == "" {
		delete(n.DrainedGPUs, uuid)
	} else {
		n.DrainedGPUs[uuid] = reason
	}
	c.setNode(n)
	return nil
}

func (c *Controller) nodeNames() string {
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// Reserve keeps nodes, or some of their GPUs, for some jobs or for nobody, during
// a span of time. GPUs may be named as Drain names them if they are of one node.
// One of the same name is replaced and keeps its ID. The answer is nil or *Refusal.
type Reserve struct{ Window sched.Window }

func (e Reserve) apply(c *Controller, now sched.Time) any {
	if e.Window.End <= now {
		return &state.Refusal{Code: state.Conflict, Path: "end", Message: fmt.Sprintf("reservation %q would end in the past", e.Window.Name)}
	}
	for _, name := range e.Window.Nodes {
		if c.node(name) == nil {
			return &state.Refusal{Code: state.NotFound, Path: "nodes", Message: fmt.Sprintf("there is no node %q", name), Hint: "nodes here: " + c.nodeNames()}
		}
	}
	if refusal := c.findGPUs(&e.Window); refusal != nil {
		return refusal
	}
	if old, ok := c.sched.Window(e.Window.Name); ok {
		e.Window.ID = old.ID
	}
	if err := c.sched.Reserve(e.Window); err != nil {
		return &state.Refusal{Code: state.Conflict, Message: err.Error()}
	}
	e.Window, _ = c.sched.Window(e.Window.Name) // what was chosen is kept over restarts
	c.record(state.Record{Kind: state.KindWindow, Name: e.Window.Name, Value: state.Encode(e.Window)})
	c.windows = append(slices.DeleteFunc(slices.Clone(c.windows), func(w sched.Window) bool { return w.Name == e.Window.Name }), e.Window)
	c.dirty = true
	return nil
}

// findGPUs makes UUIDs of a window's GPUs.
func (c *Controller) findGPUs(w *sched.Window) *state.Refusal {
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

// Unreserve removes a reservation. The answer is nil or *Refusal.
type Unreserve struct{ Name string }

func (e Unreserve) apply(c *Controller, _ sched.Time) any {
	if !c.sched.Unreserve(e.Name) {
		return &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no reservation %q", e.Name)}
	}
	c.dropWindow(e.Name)
	return nil
}

func (c *Controller) dropWindow(name string) {
	c.record(state.Record{Kind: state.KindWindow, Name: name})
	c.windows = slices.DeleteFunc(slices.Clone(c.windows), func(w sched.Window) bool { return w.Name == name })
	c.dirty = true
}

func (c *Controller) loadWindow(r state.Record) error {
	var w sched.Window
	if err := json.Unmarshal(r.Value, &w); err != nil {
		return fmt.Errorf("decode reservation record %s: %w", r.Name, err)
	}
	if err := c.sched.Reserve(w); err != nil {
		return err
	}
	c.windows = append(c.windows, w)
	return nil
}

// Reconfigure replaces the site's rules, whole or not at all. The answer is nil
// or *Refusal.
type Reconfigure struct{ Config Config }

func (e Reconfigure) apply(c *Controller, now sched.Time) any {
	old := c.cfg
	set := func(cfg Config) error {
		if err := c.sched.SetPolicy(cfg.Policy); err != nil {
			return err
		}
		return c.ledger.SetConfig(cfg.Accounting)
	}
	if err := set(e.Config); err != nil {
		must(set(old)) // it was in force
		return &state.Refusal{Code: state.Conflict, Message: err.Error(), Hint: "the old rules stay in force"}
	}
	must(c.rebase(now)) // charges come from allocations, which are in bounds
	c.cfg, c.dirty, c.lastShares = e.Config, true, nil
	return nil
}

// Forget drops a node that is gone for good. The answer is nil or *Refusal.
type Forget struct{ Node string }

func (e Forget) apply(c *Controller, _ sched.Time) any {
	i, ok := c.findNode(e.Node)
	if !ok {
		return &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no node %q", e.Node), Hint: "nodes here: " + c.nodeNames()}
	}
	n := c.nodes[i]
	if len(n.Jobs) > 0 || !n.Lost {
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is in contact or has %d jobs", n.Name, len(n.Jobs)),
			Hint: "stop its gnoded and wait until ginfo shows it as lost"}
	}
	c.sched.RemoveNode(n.Name)
	c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	c.record(state.Record{Kind: state.KindNode, Name: n.Name})
	c.dirty = true
	return nil
}
