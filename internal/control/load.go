package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/accounting"
	"gbatch/internal/control/fit"
	"gbatch/internal/control/heard"
	"gbatch/internal/control/picture"
	"gbatch/internal/control/quota"
	"gbatch/internal/control/standby"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Load takes one stored record, in any order, before the first Apply. Kinds
// that the table does not need (documents, secrets, events, attempts, UUIDs)
// are ignored. Call Loaded after the last.
func (c *Controller) Load(r state.Record) error {
	switch r.Kind {
	case state.KindJob:
		return c.standby.Put(r.Job, r.Value)
	case state.KindHistory:
		c.jobs.next = max(c.jobs.next, r.Job+1)
	case state.KindTasks:
		r.Value = slices.Clone(r.Value) // it is looked at when all are there
		c.loading[r.Job] = append(c.loading[r.Job], r)
	case state.KindNode:
		n, err := state.DecodeNode(r.Name, r.Value)
		if err != nil {
			return err
		}
		if why := fit.Unusable(n.Name, &n.Inventory.Inventory); why != "" {
			return fmt.Errorf("decode node record %s: %s", r.Name, why)
		}
		n.Past = c.pasts[n.Name]
		c.nodes.set(*n)
	case state.KindThere:
		if err := json.Unmarshal(r.Value, &c.nodes.there); err != nil {
			return fmt.Errorf("decode record of when a controller was there: %w", err)
		}
	case state.KindPast:
		var past []state.NodeChange
		if err := json.Unmarshal(r.Value, &past); err != nil {
			return fmt.Errorf("decode record of what became of node %s: %w", r.Name, err)
		}
		c.pasts[r.Name] = past
		if n := c.nodes.get(r.Name); n != nil {
			v := *n
			v.Past = past
			c.nodes.put(&v)
		}
	case state.KindFloor:
		c.jobs.next = max(c.jobs.next, r.Job)
	case state.KindWindow:
		return c.queue.loadWindow(r)
	case state.KindStored:
		var s quota.Stored
		if err := json.Unmarshal(r.Value, &s); err != nil {
			return fmt.Errorf("decode record of what user %s has stored: %w", r.Name, err)
		}
		c.jobs.owned.Load(r.Name, s)
	case state.KindUsage:
		var row accounting.Row
		if err := json.Unmarshal(r.Value, &row); err != nil {
			return fmt.Errorf("decode usage record %s: %w", r.Name, err)
		}
		if err := c.ledger.Load(row); err != nil {
			return fmt.Errorf("decode usage record %s: %w", r.Name, err)
		}
	}
	return nil
}

// Loaded finishes loading: queue and allocations are rebuilt from the jobs in
// the order of their numbers. Nodes get until NodeTimeout from now to say that
// they are there.
func (c *Controller) Loaded(now sched.Time) error {
	c.out.Begin(now, true) // all of it is stored
	for n := range c.nodes.list.All() {
		v := *n
		v.LastSeen, v.Heard = now, c.nodes.there.Before(v.Name, now)
		v.Version = c.nodes.version()
		c.nodes.set(v)
	}
	c.jobs.table = c.standby.Table
	if err := c.arrays.load(c.loading); err != nil {
		return err
	}
	c.pasts, c.nodes.there = nil, heard.Note{}
	c.loading, c.standby = nil, nil
	c.jobs.recount()
	c.jobs.loaded, c.jobs.loadedAt = c.jobs.next, now
	for j := range c.jobs.all() {
		if err := c.loadJob(j); err != nil {
			return fmt.Errorf("job %d: %w", j.Number, err)
		}
	}
	if err := c.ledger.Loaded(c.jobs.charges()); err != nil {
		return err
	}
	c.depends.Load(&c.jobs.table)
	c.templates.FindNext(&c.jobs.table)
	c.jobs.sortEnded()
	for _, n := range c.jobs.ended {
		c.queue.observe(c.jobs.get(n))
	}
	c.queue.due = true
	c.out.Begin(now, c.cfg.NoRecords)
	return nil
}

// loadJob tells the parts of a job what the table has.
func (c *Controller) loadJob(j *state.Job) error {
	if j.State.Final() {
		c.jobs.ended = append(c.jobs.ended, j.Number)
		return nil
	}
	c.jobs.watchLimit(j)
	c.jobs.watchWarning(j)
	switch {
	case j.Cron != nil:
		c.templates.Add(j.Number)
	case j.State.Active() && j.Tasks == nil:
		return c.loadActive(j)
	case standby.Waits(j) && (j.Parent > 0 || j.Submitted > c.out.Now):
		c.jobs.enqueue(j)
	case standby.Waits(j): // it is in the queue
		j.Ref, _ = c.queue.sched.Ref(sched.JobID(j.Number))
	}
	return nil
}

func (c *Controller) loadActive(j *state.Job) error {
	if j.Holds() {
		if err := c.queue.sched.Adopt(picture.Running(j)); err != nil {
			return err
		}
	} else if err := c.attempts.loadGiven(j); err != nil {
		return err
	}
	for _, r := range j.Attempt.Ranks {
		if r.Phase == node.PhaseEnded { // its node may be forgotten, while others of the gang end
			continue
		}
		if c.nodes.get(r.Alloc.Node) == nil {
			return fmt.Errorf("it runs on %s, which is no node", r.Alloc.Node)
		}
		c.nodes.arrive(r.Alloc.Node, j.Number)
	}
	return nil
}
