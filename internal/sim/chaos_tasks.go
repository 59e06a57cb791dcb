package sim

import (
	"fmt"

	"gbatch/internal/control"
	"gbatch/internal/job"
)

// tasks makes a random job's array: short ones that end, and long ones whose
// window is never all of it.
func (x *chaos) tasks() *job.Tasks {
	t := &job.Tasks{Indexes: job.FirstIndexes(1 + x.rng.IntN(12))}
	if x.oneIn(5) {
		t.Indexes = fmt.Sprintf("1-3,10-%d", 400+x.rng.IntN(400))
	}
	if x.oneIn(2) {
		t.Parallelism = 1 + x.rng.IntN(4)
	}
	most := x.rng.IntN(3)
	switch x.rng.IntN(4) {
	case 0:
		t.FailFast = true
	case 1:
		t.MaxFailed = &most
	case 2:
		t.EnoughCount = 1
	}
	return t
}

// retries lets a random job be tried again.
func (x *chaos) retries(req *control.Request) {
	most := x.rng.IntN(4)
	req.Retry = []*job.Retry{
		{Limit: 2}, {Limit: 5, JobLimit: &most}, {Window: 600, Backoff: 5}, {Limit: 3, On: []string{job.OnInterruption}},
		{Limit: 1, Rules: []job.RetryRule{{Reasons: []job.Reason{job.OOM}, Action: job.FailJob}, {ExitCodes: []int{1}, Action: job.Ignore}}},
	}[x.rng.IntN(5)]
	req.LimitScope = []string{job.LimitTotal, job.LimitAttempt, job.LimitJob}[x.rng.IntN(3)]
}
