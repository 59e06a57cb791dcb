package state

import (
	"cmp"

	"gbatch/accounting"
	"gbatch/sched"
)

// Charge is what one rank of the last attempt costs until a moment.
func (j *Job) Charge(r Rank, end sched.Time) accounting.Charge {
	return accounting.Charge{
		Project: j.Owner.Project, User: j.Owner.User, Model: r.Model, Cluster: r.Cluster,
		MilliGPU: r.Alloc.MilliGPU(), MilliCPU: r.Alloc.MilliCPU, MemMiB: r.Alloc.MemMiB,
		Start: int64(cmp.Or(r.Since, j.Attempt.Start)), End: int64(end),
	}
}

// Held is what a job has held by all its attempts, until a moment if one is
// under way: resources x milliseconds.
func (v *View) Held(j *Job, now sched.Time) accounting.Amount {
	sum := j.Used
	if !j.State.Active() {
		return sum
	}
	sum = sum.Plus(j.Attempt.Used)
	for _, r := range j.Attempt.Ranks {
		ch := j.Charge(r, now)
		sum = sum.Plus(v.Billing.Rate(ch).Over(ch.End - ch.Start))
	}
	return sum
}
