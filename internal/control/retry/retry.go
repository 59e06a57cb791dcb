// Package retry decides whether an attempt that failed is followed by another, and
// when. It is pure: it counts nothing, and its caller keeps what it says.
package retry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Failure is an attempt that failed, with what the decision about another one
// depends on.
type Failure struct {
	Now     sched.Time
	Exit    node.Exit  // of the rank that speaks for the attempt
	Text    string     // the same in words
	Began   bool       // its program has run, or may have
	Ran     sched.Time // for how long
	Proven  bool       // it is no task of an array none of which has run yet
	NoTime  bool       // no run time is left for another attempt
	Before  state.Retried
	Prologs []string // nodes on which the site's prolog failed before it
	Beside  []string // and before other tasks of its array that do not run
	JobWide int      // failures that count against Retry.JobLimit, of all tasks, before this one

	Restartable bool
	Retry       *job.Retry // nil: none asked
}

// Decision is what becomes of a job, or of a task, whose attempt failed.
type Decision struct {
	Again    bool
	Counted  bool // against the limits
	WholeJob bool // not again, and no other task either
	Hold     bool // again when somebody releases it
	Reason   job.Reason
	Text     string
	After    state.Retried
}

// laterTries bounds how often a job is tried again for what lies with neither it nor its
// node, as a registry that does not answer: it holds nothing between two tries.
const laterTries = 2

// Decide says whether a failed attempt is followed by another. Rules come
// first; then faults of the infrastructure, which never count, and of others, a few of which
// do not; then limits.
func Decide(f Failure) Decision {
	r := cmp.Or(f.Retry, &job.Retry{})
	backoff := sched.Time(cmp.Or(r.Backoff, job.DefaultBackoff)) * sched.Second
	longest := max(sched.Time(cmp.Or(r.MaxWait, job.DefaultMaxWait))*sched.Second, backoff)
	window := sched.Time(r.Window) * sched.Second
	if f.Began {
		f.Before.Prologs = nil
	}
	v := Decision{Reason: f.Exit.Reason, Text: f.Text, After: f.Before}
	infra := v.Reason.Class() == job.Infra

	v.After.Prologs = some(f.Before.Prologs, f.Prologs)
	v.After.Row++
	if v.After.Row == 1 || f.Ran >= max(window, longest) {
		v.After.Row, v.After.Since = 1, f.Now // it went well for long: another row
	}
	fail := func(why string) Decision {
		v.Again, v.Text = false, strings.Trim(f.Text+"; "+why, "; ")
		return v
	}
	if v.Reason == job.MaxRuntime && f.NoTime {
		return fail("")
	}
	switch rule := f.rule(r); {
	case rule == job.FailJob:
		v.WholeJob = true
		return fail("by a rule of gbatch.retry the job fails")
	case rule == job.FailTask:
		return fail("by a rule of gbatch.retry it is not tried again")
	case rule == job.Ignore:
		v.Again = true
	case infra:
		v.Again = f.Restartable || !f.Began || Interrupted(f.Retry)
	case f.Exit.Later && !f.Began && v.After.Row <= laterTries:
		v.Again = true
	case f.Retry != nil && (rule == job.Count || handles(r, job.OnError)):
		v.Counted = true
		v.After.Failures++
		switch {
		case r.JobLimit != nil && f.JobWide+1 > *r.JobLimit:
			v.WholeJob, v.Reason = true, job.BackoffLimit
			return fail(beyond(f.JobWide+1, *r.JobLimit))
		case r.Limit > 0 && v.After.Failures > r.Limit:
			return fail(fmt.Sprintf("it has failed %d times, and gbatch.retry.limit is %d", v.After.Failures, r.Limit))
		case r.Limit == 0 && r.JobLimit == nil && window == 0:
			return fail("")
		}
		v.Again = true
	}
	if !v.Again {
		return fail("")
	}
	if f.NoTime {
		v.Reason = job.MaxRuntime
		return fail("no run time is left for another try")
	}
	if nodes := some(v.After.Prologs, f.Beside); v.Reason == job.Prolog && len(nodes) >= maxPrologs {
		return v.held(nodes)
	}
	free := infra && (f.Proven || v.Reason == job.Prolog) // a prolog that fails everywhere is held after two nodes
	wait := waitAfter(v.After.Row, backoff, longest, free)
	if window > 0 && f.Now+wait-v.After.Since > window {
		return fail(fmt.Sprintf("failures go on for longer than gbatch.retry.window, %s", r.Window))
	}
	v.After.Until, v.Text = f.Now+wait, f.Text+"; queued again"
	if wait > 0 {
		v.Text = fmt.Sprintf("%s; tried again in %s", f.Text, job.Duration(wait/sched.Second))
	}
	return v
}

// maxPrologs is on how many nodes the site's prolog may fail before a job. Each is
// drained, as one node cannot tell whether it is to blame itself; what two nodes have
// in common is the job.
const maxPrologs = 2

// held is a decision to try again when somebody releases the job.
func (v Decision) held(nodes []string) Decision {
	v.Hold = true
	v.Text = fmt.Sprintf("held, as prologs have failed before it on %s, and drained them; the last: %s", strings.Join(nodes, ", "), v.Text)
	return v
}

// mostPrologs bounds the nodes that are kept.
const mostPrologs = 4

// some are the first nodes of two lists, each once.
func some(a, b []string) []string {
	if len(a)+len(b) == 0 {
		return nil
	}
	list := slices.Concat(a, b)
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), mostPrologs)]
}

// waitAfter is how long the next try is put off: doubled with each failure of a row.
// The first fault of the infrastructure is not the job's, and costs nothing.
func waitAfter(row int, backoff, longest sched.Time, first bool) sched.Time {
	n := row - 1
	if first {
		if n == 0 {
			return 0
		}
		n--
	}
	for wait := backoff; n >= 0; n-- {
		if n == 0 || wait >= longest {
			return min(wait, longest)
		}
		wait *= 2
	}
	return 0
}

// rule is the action of the first rule that fits; empty: none does.
func (f Failure) rule(r *job.Retry) string {
	for _, rule := range r.Rules {
		if rule.Fits(f.Exit.Reason, f.Exit.Code) {
			return rule.Action
		}
	}
	return ""
}

// Interrupted says whether a job asks to be tried again where it is ended by no fault of
// its own.
func Interrupted(r *job.Retry) bool { return r != nil && handles(r, job.OnInterruption) }

func handles(r *job.Retry, event string) bool {
	return len(r.On) == 0 || slices.Contains(r.On, event)
}

// beyond says that a job has failed too often. Where it may not fail at all the failure says it.
func beyond(failures, limit int) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf("%d failures, of all attempts together, are more than gbatch.retry.jobLimit, %d", failures, limit)
}
