package control

import (
	"fmt"
	"slices"

	"gbatch/internal/state"
)

// Check verifies every invariant that holds between steps. Tests and the
// simulator call it after each step; it costs O(jobs).
func (c *Controller) Check() error {
	if err := c.queue.sched.Check(); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	type grant struct{ node, gpu string }
	granted := map[grant]int64{}
	for j := range c.jobs.all() {
		if err := c.checkJob(j); err != nil {
			return fmt.Errorf("job %d: %w", j.Number, err)
		}
		if !j.State.Active() {
			continue
		}
		for _, r := range j.Attempt.Ranks {
			for _, g := range r.Alloc.GPUs {
				k := grant{r.Alloc.Node, g.UUID}
				if granted[k] += g.Milli; granted[k] > 1000 {
					return fmt.Errorf("GPU %s of %s is granted %d/1000 times", g.UUID, r.Alloc.Node, granted[k])
				}
			}
		}
	}
	if err := c.jobs.check(); err != nil {
		return err
	}
	if err := c.nodes.check(); err != nil {
		return err
	}
	if err := c.depends.Check(&c.jobs.table); err != nil {
		return err
	}
	if err := c.arrays.Check(&c.jobs.table); err != nil {
		return err
	}
	return nil
}

func (c *Controller) checkJob(j *state.Job) error {
	if j.State.Active() != (j.Attempt != nil && j.Attempt.End == 0) {
		return fmt.Errorf("it is %s but its attempt says otherwise", j.State)
	}
	if j.Ending != nil && !j.State.Active() && j.Tasks == nil {
		return fmt.Errorf("it is %s and being ended", j.State)
	}
	if !j.State.Active() {
		return nil
	}
	held, _ := c.queue.sched.Running(schedID(j.Number))
	for i, r := range j.Attempt.Ranks {
		if i >= len(held.Ranks) || held.Ranks[i].MilliCPU != r.Alloc.MilliCPU || held.Ranks[i].MemMiB != r.Alloc.MemMiB {
			return fmt.Errorf("its rank %d holds %s, and not to the scheduler", i, sizeText(r.Alloc))
		}
		n := c.node(r.Alloc.Node)
		if n == nil {
			return fmt.Errorf("it runs on %s, which is no node", r.Alloc.Node)
		}
		if slices.Contains(n.Jobs, j.Number) != j.On(n.Name) {
			return fmt.Errorf("node %s and the job disagree whether it is there", n.Name)
		}
	}
	return nil
}
