package control

import (
	"cmp"
	"encoding/json"

	"gbatch/accounting"
	"gbatch/sched"
)

// charges is what the ranks of a job's last attempt cost, from its start until
// its end.
func charges(j *Job) []accounting.Charge {
	var out []accounting.Charge
	for _, r := range j.Attempt.Ranks {
		out = append(out, rankCharge(j, r, j.Attempt.End))
	}
	return out
}

func rankCharge(j *Job, r Rank, end sched.Time) accounting.Charge {
	return accounting.Charge{
		Project: j.Owner.Project, User: j.Owner.User, Model: r.Model,
		MilliGPU: r.Alloc.MilliGPU(), MilliCPU: r.Alloc.MilliCPU, MemMiB: r.Alloc.MemMiB,
		Start: int64(cmp.Or(r.Since, j.Attempt.Start)), End: int64(end),
	}
}

// chargeRank begins or ends the charge of one rank, whose allocation changes.
func (c *Controller) chargeRank(j *Job, r Rank, end sched.Time, book func(accounting.Charge) error) {
	must(book(rankCharge(j, r, end)))
	c.recordUsage(j.Owner)
}

// charge begins or ends the charge of an attempt, in the step that gives or
// takes its resources.
func (c *Controller) charge(j *Job, book func(accounting.Charge) error) {
	for _, ch := range charges(j) {
		must(book(ch)) // amounts come from an allocation, which is in bounds
	}
	c.recordUsage(j.Owner)
}

func (c *Controller) recordUsage(o *Owner) {
	if c.cfg.NoRecords {
		return
	}
	row, _ := c.ledger.Stored(o.Project, o.User)
	v, err := json.Marshal(row)
	must(err)
	c.record(Record{Kind: KindUsage, Name: o.Project + "/" + o.User, Value: v})
}

// rebase makes the ledger agree with what runs, after a load.
func (c *Controller) rebase(now sched.Time) error {
	var running []accounting.Charge
	for j := range c.jobs.all() {
		if j.State.Active() {
			running = append(running, charges(j)...)
		}
	}
	return c.ledger.Rebase(int64(now), running)
}

// modelOf is the model of an allocation's GPUs: those of one rank are alike.
func (n *Node) modelOf(a sched.Allocation) string {
	if len(a.GPUs) == 0 {
		return ""
	}
	for _, g := range n.Inventory.GPUs {
		if g.UUID == a.GPUs[0].UUID {
			return g.Model
		}
	}
	return ""
}
