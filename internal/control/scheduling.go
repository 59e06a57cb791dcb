package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// schedID is the job's name to the scheduler, which puts it into its sentences:
// the number.
func schedID(n job.Number) sched.JobID { return sched.JobID(n) }

// NumberOf is the number of a job that the scheduler names.
func NumberOf(id sched.JobID) job.Number { return job.Number(id) }

// View takes a snapshot. Only the owner may call it, and may publish it only
// when the records of all steps before are durable.
func (c *Controller) View(now sched.Time) *state.View {
	return &state.View{Now: now, Nodes: c.nodes, Plan: c.plan, Windows: c.windows, Billing: c.cfg.Accounting, Jobs: c.jobs.Snapshot()}
}
