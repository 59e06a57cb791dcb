package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/control"
	"gbatch/internal/state"
	"gbatch/sched"
)

// History gathers a controller's own past out of its records: what was asked
// when, how long it ran, and on which nodes.
type History struct {
	jobs  []*state.Job
	nodes []Node
}

// Take takes one stored record. Those that say nothing of jobs or nodes are
// ignored. The value may be used again by the caller.
func (h *History) Take(r state.Record) error {
	switch r.Kind {
	case state.KindJob, state.KindHistory:
		j, err := state.DecodeJob(r.Value)
		if err != nil {
			return err
		}
		h.jobs = append(h.jobs, j)
	case state.KindNode:
		n, err := state.DecodeNode(r.Name, r.Value)
		if err != nil {
			return err
		}
		h.nodes = append(h.nodes, Node{n.Name, n.Inventory.Inventory})
	}
	return nil
}

// Workload is the past as something to replay: every job that ran to an end,
// for as long as it held its nodes the last time.
func (h *History) Workload() (workload, []Node) {
	w := workload{}
	never, open := 0, 0
	for _, j := range h.jobs {
		at := j.Last()
		switch {
		case !j.State.Final():
			open++
			continue
		case at == nil || at.End == 0:
			never++
			continue
		}
		req := *j.Request
		w.Jobs = append(w.Jobs, Job{
			Name: fmt.Sprint(j.Number), User: j.Owner.User, Project: j.Owner.Project, QOS: j.Owner.QOS,
			Submit: j.Submitted, Run: max(at.End-at.Start, 0), Limit: req.Limit, Shape: req.Shape,
			Request: &req, Waited: at.Start - j.Submitted,
		})
	}
	if open > 0 {
		w.note("%d jobs left out: they wait or run still", open)
	}
	if never > 0 {
		w.note("%d jobs left out: they never ran", never)
	}
	w.inOrder()
	w.Notes = slices.DeleteFunc(w.Notes, func(n string) bool { return n == "" })
	w.fromFirst()
	slices.SortFunc(h.nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return w, h.nodes
}

// asItWas is the figures of the past itself.
func (w workload) asItWas(nodes []Node) Report {
	cfg := config{Jobs: w.Jobs, Nodes: nodes}
	var r result
	var f farm
	f.init(nodes)
	r.Cores, r.GPUs = f.cores, f.gpus
	for i := range w.Jobs {
		j := &w.Jobs[i]
		o := outcome{Start: j.Submit + j.Waited, End: j.Submit + j.Waited + j.Run}
		r.Outcomes = append(r.Outcomes, o)
		r.LastEnd = max(r.LastEnd, o.End)
	}
	out := NewReport(cfg, r)
	out.Policy = "as it was"
	return out
}

// request is what the job asks of the controller.
func (j *Job) request(cfg *config) *state.Request {
	if j.Request == nil {
		req := &state.Request{Shape: j.Shape, Limit: j.Limit, Interactive: cfg.OneShot}
		if req.Limit == 0 {
			req.Limit = cfg.Control.DefaultRun
		}
		return req
	}
	req := *j.Request
	req.Limit = max(req.Limit, j.Run, 1) // it was not ended sooner then either
	if req.LimitMin > 0 {
		req.LimitMin = min(max(req.LimitMin, j.Run), req.Limit) // nor with a shorter limit
	}
	req.Shape = cfg.licensed(req.Shape)
	req.Interactive, req.NotAfter, req.MaxQueued = false, 0, 0
	req.Reservations = nil
	return &req
}

// licensed is a shape without the licences that the rules do not count, or not so many
// of: the site had them then, and the job would never start.
func (c *config) licensed(s *sched.Shape) *sched.Shape {
	lacks := func(x sched.License) bool { return c.Control.Policy.Licenses[x.Name] < x.Count }
	if !slices.ContainsFunc(s.Licenses, lacks) {
		return s
	}
	out := *s
	out.Licenses = slices.DeleteFunc(slices.Clone(s.Licenses), lacks)
	return &out
}

// Change is a question about the past: what if there had been other nodes or
// other rules.
type Change struct {
	Workload workload
	Nodes    []Node
	Rules    control.Config
	Add, Set []string // see AddNodes and Set
	Watch    Watch
}

// WhatIf answers it: the past as it was, replayed under the same rules, and
// replayed with the changes, if there are any.
func WhatIf(c Change) ([]Report, []Curve, error) {
	w := c.Workload
	if len(w.Jobs) == 0 {
		return nil, nil, errors.New("no job of the past can be replayed" + because(w.Notes))
	}
	c.Rules.NoRecords, c.Rules.SuspectTime, c.Rules.NodeTimeout = true, 0, 0
	reports := []Report{w.asItWas(c.Nodes)}
	var curves []Curve
	run := func(name string, rules control.Config, nodes []Node) error {
		cfg := w.config(rules, nodes, c.Watch)
		r, err := run(cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rep := NewReport(cfg, r)
		rep.Policy, rep.Notes = name, w.Notes
		reports, curves = append(reports, rep), append(curves, Curve{name, cfg, r})
		return nil
	}
	if err := run("replayed", c.Rules, c.Nodes); err != nil {
		return nil, nil, err
	}
	if len(c.Add)+len(c.Set) == 0 {
		return reports, curves, nil
	}
	nodes, rules := c.Nodes, c.Rules
	for _, a := range c.Add {
		var err error
		if nodes, err = AddNodes(nodes, a); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range c.Set {
		if err := Set(&rules, s); err != nil {
			return nil, nil, err
		}
	}
	name := "with " + strings.Join(slices.Concat(c.Add, c.Set), ", ")
	err := run(name, rules, nodes)
	return reports, curves, err
}
