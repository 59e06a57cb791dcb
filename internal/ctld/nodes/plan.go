package nodes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Plan is what nodes do and are to do: what runs there until its limit, what the
// scheduler has promised, and the reservations.
func (s *List) Plan(ctx context.Context, in *clusterInput) (*api.Plan, error) {
	p := s.picture(time.Duration(in.MaxAge) * time.Second)
	found := p.find(in)
	now := s.Now()
	out := api.Plan{Now: now.UTC(), Total: len(found), Nodes: []api.PlanNode{}}
	found = found[min(in.Offset, len(found)):]
	if in.Limit > 0 {
		found = found[:min(in.Limit, len(found))]
	}
	id := access.Caller(ctx)
	pl := planner{view: p.view, now: sched.Time(now.UnixMilli()), private: func(o *state.Owner) bool { return s.Rights.Private(id, o) }, spans: map[string][]api.PlanSpan{}}
	for _, n := range found {
		pl.spans[n.Name] = []api.PlanSpan{}
		pl.running(n.Name)
	}
	pl.promised()
	pl.reserved()
	for _, n := range found {
		spans := pl.spans[n.Name]
		slices.SortStableFunc(spans, func(a, b api.PlanSpan) int { return a.Start.Compare(b.Start) })
		out.Nodes = append(out.Nodes, api.PlanNode{Name: n.Name, State: n.State, GPUs: len(n.GPUs), Spans: spans})
	}
	return &out, nil
}

// planner collects the spans of some nodes.
type planner struct {
	view    *state.View
	now     sched.Time
	private func(*state.Owner) bool
	spans   map[string][]api.PlanSpan // of the nodes that are asked for
}

// running is what jobs hold of a node.
func (p *planner) running(name string) {
	for _, num := range p.view.Node(name).Jobs {
		j := p.view.Job(num)
		if !j.Holds() {
			continue
		}
		var held []sched.Allocation
		for _, r := range j.Attempt.Ranks {
			held = append(held, r.Alloc)
		}
		end := sched.Time(0)
		if j.Request.Limit > 0 {
			end = j.Attempt.Start + j.LimitLeft()
		}
		p.add(name, p.ofJob(j, api.PlanRunning, j.Attempt.Start, end), held)
	}
}

// promised is the places in the plan of jobs that still wait.
func (p *planner) promised() {
	if p.view.Plan == nil {
		return
	}
	for _, res := range p.view.Plan.Reservations {
		j := p.view.Job(job.Number(res.Job))
		if j == nil || j.State != job.Queued {
			continue // it has started, or is gone, since the round
		}
		start, end := max(res.At, p.now), sched.Time(0)
		if limit := cmp.Or(res.Limit, j.Request.Limit); limit > 0 {
			end = start + limit
		}
		span := p.ofJob(j, api.PlanPromised, start, end)
		if span.Private { // when others' jobs start is not told
			span.Job, span.User = "", ""
		}
		seen := map[string]bool{}
		for _, a := range res.Ranks {
			if !seen[a.Node] {
				p.add(a.Node, span, res.Ranks)
			}
			seen[a.Node] = true
		}
	}
}

// reserved is the windows that are not over. That a reservation is there is told to
// all; whom it is for and why is not told here.
func (p *planner) reserved() {
	for _, w := range p.view.Windows {
		kind := api.PlanReserved
		if w.Maintenance {
			kind = api.PlanMaintenance
		}
		for _, name := range w.Nodes {
			n := p.view.Node(name)
			if p.spans[name] == nil || n == nil {
				continue
			}
			span := api.PlanSpan{Kind: kind, Name: w.Name}
			if len(w.GPUs) == 0 {
				span.GPUs, span.CPUs = float64(len(n.Inventory.GPUs)), n.Inventory.CPUs
			}
			for _, g := range n.Inventory.GPUs {
				if slices.Contains(w.GPUs, g.UUID) {
					span.GPUs++
				}
			}
			for _, t := range w.Spans() {
				if t.End > p.now {
					span.Start, span.End = wire.Time(t.Start), wire.Time(t.End)
					p.spans[name] = append(p.spans[name], span)
				}
			}
		}
	}
}

func (p *planner) ofJob(j *state.Job, kind string, start, end sched.Time) api.PlanSpan {
	out := api.PlanSpan{Kind: kind, Job: j.ID(), User: j.Owner.User, Name: j.Name, Start: wire.Time(start), End: wire.Time(end)}
	if p.private(j.Owner) {
		out.Name, out.Private = "", true
	}
	return out
}

// add adds a job's span to a node that is asked for, with what it has of it.
func (p *planner) add(name string, span api.PlanSpan, ranks []sched.Allocation) {
	list := p.spans[name]
	if list == nil {
		return
	}
	var gpus, cpus int64
	for _, a := range ranks {
		if a.Node == name {
			gpus, cpus = gpus+a.MilliGPU(), cpus+a.MilliCPU
		}
	}
	span.GPUs, span.CPUs = float64(gpus)/1000, int(cpus/1000)
	p.spans[name] = append(list, span)
}
