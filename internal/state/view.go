package state

import (
	"cmp"
	"iter"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/sched"
)

// View is the controller at one moment, for readers. It never changes and may
// be read by many at once.
type View struct {
	Now   sched.Time
	Nodes Nodes
	Plan  *sched.Plan

	Windows []Window // advance reservations
	Billing accounting.Config

	Jobs Table
	Next job.Number // of the next job
}

// Job is the job with that number, or nil.
func (v *View) Job(n job.Number) *Job { return v.Jobs.Get(n) }

// All yields every job in the table by number.
func (v *View) All() iter.Seq[*Job] { return v.Jobs.All() }

// Live yields the jobs that are not over by number. What it costs is by them, however many others there are.
func (v *View) Live() iter.Seq[*Job] { return v.Jobs.Live() }

// Len is how many jobs the table holds.
func (v *View) Len() int { return v.Jobs.count }

// States is how many jobs show which state. Nobody may change it.
func (v *View) States() map[job.State]int {
	if v.Jobs.states == nil {
		return map[job.State]int{}
	}
	return v.Jobs.states
}

// Node is the node with that name, or nil.
func (v *View) Node(name string) *Node {
	return v.Nodes.Get(name)
}

// Waiting is why a queued job does not run, by the last plan.
func (v *View) Waiting(j *Job) sched.Reason {
	if j.Cron != nil {
		return j.Cron.Reason()
	}
	if j.Waits.Unmet() {
		return sched.Reason{Code: sched.CodeDependency, Text: j.Waits.Text()}
	}
	if v.Plan == nil {
		return sched.Reason{Code: sched.CodeNotYetEvaluated, Text: "no round has looked at it yet"}
	}
	r := v.Plan.ReasonFor(sched.JobID(j.Number), j.Ref)
	if j.Retried != nil && r.Code == sched.CodeBeginTime && j.Retried.Until > v.Now {
		r.Text = "waits for its next try: " + j.Text
	}
	return r
}

// WaitingCode is the code of Waiting, without the words: for counts over all
// jobs.
func (v *View) WaitingCode(j *Job) sched.Code {
	switch {
	case j.Cron != nil:
		return j.Cron.Reason().Code
	case j.Waits.Unmet():
		return sched.CodeDependency
	case v.Plan == nil:
		return sched.CodeNotYetEvaluated
	}
	return v.Plan.CodeFor(sched.JobID(j.Number), j.Ref)
}

// Charge is what one rank of the last attempt costs until a moment.
func (j *Job) Charge(r Rank, end sched.Time) accounting.Charge {
	return accounting.Charge{
		Project: j.Owner.Project, User: j.Owner.User, Model: r.Model, Cluster: r.Cluster,
		MilliGPU: r.Alloc.MilliGPU(), MilliCPU: r.Alloc.MilliCPU, MemMiB: r.Alloc.MemMiB,
		Start: int64(cmp.Or(r.Since, j.Last().Start)), End: int64(end),
	}
}

// Held is what a job has held by all its attempts, until a moment if one is
// under way: resources x milliseconds.
func (v *View) Held(j *Job, now sched.Time) accounting.Amount {
	sum := j.Used
	if !j.Holds() {
		return sum
	}
	sum = sum.Plus(j.Attempt.Used)
	for _, r := range j.Attempt.Ranks {
		ch := j.Charge(r, now)
		sum = sum.Plus(v.Billing.Rate(ch).Over(ch.End - ch.Start))
	}
	return sum
}
