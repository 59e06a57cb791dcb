package control

import (
	"fmt"

	"gbatch/internal/control/ranks"
	"gbatch/internal/control/retry"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// retry decides about a job whose attempt failed, and counts the failure.
func (a *attempts) retry(j *state.Job, at *state.Attempt, reason job.Reason, text string) retry.Decision {
	bad := at.Decisive()
	f := retry.Failure{
		Now: a.out.Now, Exit: node.Exit{Code: 255, Reason: reason}, Text: text, Began: ranks.Began(at), NoTime: a.jobs.noTimeLeft(j, at.End),
		Restartable: j.Request.Restartable, Retry: j.Request.Retry,
	}
	if bad.Exit != nil {
		f.Exit = *bad.Exit
		f.Exit.Reason = reason
	}
	if j.Started > 0 {
		f.Ran = max(at.End-j.Started, 0)
	}
	if j.Retried != nil {
		f.Before = *j.Retried
	}
	f.JobWide, f.Proven = f.Before.Failures, true
	of := a.jobs.arrays.Of(j.Parent)
	if of != nil {
		p := a.jobs.get(j.Parent)
		f.JobWide, f.Proven = p.Tasks.Failures+of.Failures, p.First > 0 || of.Begun > 0
	}
	for _, r := range at.Ranks {
		if r.Exit != nil && r.Exit.Reason == job.Prolog {
			f.Prologs = append(f.Prologs, r.Alloc.Node)
		}
	}
	for c := range of.Live() {
		if c := a.jobs.get(c); c.Retried != nil && c.Started == 0 && c != j {
			f.Beside = append(f.Beside, c.Retried.Prologs...)
		}
	}
	v := retry.Decide(f)
	if of == nil {
		return v
	}
	if v.Hold {
		of.Held = v.Text
		a.jobs.arrays.Touch(j.Parent)
	}
	if v.Counted {
		of.Failures++
		a.jobs.arrays.Touch(j.Parent)
	}
	if v.WholeJob && of.Whole == nil {
		of.Whole = &state.Ending{Then: job.Failed, Reason: v.Reason, Text: fmt.Sprintf("task %d: %s", j.Index, v.Text)}
		a.jobs.arrays.Touch(j.Parent)
	}
	return v
}
