package retry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestDecide: what follows a failure, by what went before and what the
// document says.
func TestDecide(t *testing.T) {
	const now = 1000 * sched.Second
	two := 2
	program, host := node.Exit{Code: 3, Reason: job.ExitCode}, node.Exit{Code: 255, Reason: job.GPUError}
	silent := node.Exit{Code: 125, Reason: job.ImagePull, Later: true}
	type want struct {
		Again, Counted, WholeJob bool
		Reason                   job.Reason
		Wait                     sched.Time
	}
	row := func(failures, n int) state.Retried {
		return state.Retried{Failures: failures, Row: n, Since: now - 60*sched.Second}
	}
	for name, tc := range map[string]struct {
		f    Failure
		want want
	}{
		"nothing asked":                   {Failure{Exit: program}, want{Reason: job.ExitCode}},
		"nothing asked, node":             {Failure{Exit: host, Began: true}, want{Reason: job.GPUError}},
		"restartable, node":               {Failure{Exit: host, Restartable: true}, want{Again: true, Reason: job.GPUError}},
		"restartable, program":            {Failure{Exit: program, Restartable: true}, want{Reason: job.ExitCode}},
		"never began":                     {Failure{Exit: node.Exit{Reason: job.Server}}, want{Again: true, Reason: job.Server}},
		"node again":                      {Failure{Exit: host, Restartable: true, Before: row(0, 1)}, want{Again: true, Reason: job.GPUError, Wait: 10 * sched.Second}},
		"node, an array that never ran":   {Failure{Exit: host, Restartable: true, Proven: false, Before: state.Retried{Row: -1}}, want{Again: true, Reason: job.GPUError, Wait: 0}},
		"prolog, an array that never ran": {Failure{Exit: node.Exit{Code: 255, Reason: job.Prolog}, Prologs: []string{"n1"}, Restartable: true, Before: state.Retried{Row: -1}}, want{Again: true, Reason: job.Prolog}},
		"first retry":                     {Failure{Exit: program, Retry: &job.Retry{Limit: 1}}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 10 * sched.Second}},
		"limit":                           {Failure{Exit: program, Retry: &job.Retry{Limit: 1}, Before: row(1, 1)}, want{Counted: true, Reason: job.ExitCode}},
		"node beyond the limit":           {Failure{Exit: host, Retry: &job.Retry{Limit: 1}, Before: row(1, 1)}, want{Again: true, Reason: job.GPUError, Wait: 10 * sched.Second}},
		"doubled":                         {Failure{Exit: program, Retry: &job.Retry{Limit: 9}, Before: row(2, 2)}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 40 * sched.Second}},
		"longest":                         {Failure{Exit: program, Retry: &job.Retry{Limit: 99}, Before: row(50, 50)}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 360 * sched.Second}},
		"ran well for long":               {Failure{Exit: program, Ran: sched.Hour, Retry: &job.Retry{Limit: 99}, Before: row(50, 50)}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 10 * sched.Second}},
		"job limit":                       {Failure{Exit: program, Retry: &job.Retry{Limit: 9, JobLimit: &two}, JobWide: 2}, want{Counted: true, WholeJob: true, Reason: job.BackoffLimit}},
		"below the job limit":             {Failure{Exit: program, Retry: &job.Retry{JobLimit: &two}, JobWide: 1}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 10 * sched.Second}},
		"window":                          {Failure{Exit: program, Retry: &job.Retry{Window: 75}, Before: row(1, 1)}, want{Counted: true, Reason: job.ExitCode}},
		"inside the window":               {Failure{Exit: program, Retry: &job.Retry{Window: 80}, Before: row(1, 1)}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 20 * sched.Second}},
		"on interruption, program":        {Failure{Exit: program, Retry: &job.Retry{Limit: 3, On: []string{job.OnInterruption}}}, want{Reason: job.ExitCode}},
		"on interruption, node":           {Failure{Exit: host, Began: true, Retry: &job.Retry{Limit: 3, On: []string{job.OnInterruption}}}, want{Again: true, Reason: job.GPUError}},
		"on error, node":                  {Failure{Exit: host, Began: true, Retry: &job.Retry{Limit: 3, On: []string{job.OnError}}}, want{Reason: job.GPUError}},
		"no registry":                     {Failure{Exit: silent}, want{Again: true, Reason: job.ImagePull, Wait: 10 * sched.Second}},
		"no registry, the last try":       {Failure{Exit: silent, Before: row(0, 1)}, want{Again: true, Reason: job.ImagePull, Wait: 20 * sched.Second}},
		"no registry, given up":           {Failure{Exit: silent, Before: row(0, 2)}, want{Reason: job.ImagePull}},
		"no registry, retries asked":      {Failure{Exit: silent, Before: row(0, 2), Retry: &job.Retry{Limit: 1}}, want{Again: true, Counted: true, Reason: job.ImagePull, Wait: 40 * sched.Second}},
		"rule fails the job":              {Failure{Exit: program, Retry: &job.Retry{Limit: 3, Rules: []job.RetryRule{{ExitCodes: []int{3}, Action: job.FailJob}}}}, want{WholeJob: true, Reason: job.ExitCode}},
		"rule fails the task":             {Failure{Exit: program, Retry: &job.Retry{Limit: 3, Rules: []job.RetryRule{{NotExitCodes: []int{4}, Action: job.FailTask}}}}, want{Reason: job.ExitCode}},
		"rule ignores":                    {Failure{Exit: program, Retry: &job.Retry{Rules: []job.RetryRule{{ExitCodes: []int{3}, Action: job.Ignore}}}, Before: row(9, 0)}, want{Again: true, Reason: job.ExitCode, Wait: 10 * sched.Second}},
		"rule counts what is not asked":   {Failure{Exit: program, Retry: &job.Retry{Limit: 1, On: []string{job.OnInterruption}, Rules: []job.RetryRule{{ExitCodes: []int{3}, Action: job.Count}}}}, want{Again: true, Counted: true, Reason: job.ExitCode, Wait: 10 * sched.Second}},
		"rule counts a node's fault":      {Failure{Exit: host, Retry: &job.Retry{Limit: 1, Rules: []job.RetryRule{{Reasons: []job.Reason{job.GPUError}, Action: job.Count}}}, Before: row(1, 0)}, want{Again: true, Reason: job.GPUError}},
		"the first rule that fits":        {Failure{Exit: program, Retry: &job.Retry{Rules: []job.RetryRule{{ExitCodes: []int{4}, Action: job.FailJob}, {ExitCodes: []int{3}, Action: job.FailTask}, {ExitCodes: []int{3}, Action: job.Ignore}}}}, want{Reason: job.ExitCode}},
		"out of time":                     {Failure{Exit: node.Exit{Reason: job.MaxRuntime}, NoTime: true, Retry: &job.Retry{Limit: 3, Rules: []job.RetryRule{{Reasons: []job.Reason{job.MaxRuntime}, Action: job.Ignore}}}}, want{Reason: job.MaxRuntime}},
		"out of time, each has its own":   {Failure{Exit: node.Exit{Reason: job.MaxRuntime}, Retry: &job.Retry{Limit: 3}}, want{Again: true, Counted: true, Reason: job.MaxRuntime, Wait: 10 * sched.Second}},
		"failed with no time for others":  {Failure{Exit: program, NoTime: true, Retry: &job.Retry{Limit: 3}}, want{Counted: true, Reason: job.MaxRuntime}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.f.Now, tc.f.Proven = now, tc.f.Before.Row >= 0
			tc.f.Before.Row = max(tc.f.Before.Row, 0)
			if !tc.f.Proven && tc.want.Reason != job.Prolog {
				tc.want.Wait = 10 * sched.Second
			}
			v := Decide(tc.f)
			got := want{v.Again, v.Counted, v.WholeJob, v.Reason, 0}
			if v.Again {
				got.Wait = v.After.Until - now
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, v.Text)
			}
		})
	}
}
