package follow

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// logPause is kept before a log is asked for again that has ended although its
// job has not, or that is not there yet.
const logPause = 500 * time.Millisecond

// HasLog says that a try of the job has begun to run. Of an array, each task
// has a log of its own.
func HasLog(d *api.JobDetail) bool {
	return d.Tasks == nil && (!d.Started.IsZero() && !d.State.Pending() || slices.ContainsFunc(d.Attempts, ran))
}

// firstTry is the number of the first try that began to run and is known, and
// LastTry that of the last one; 0: there is none.
func firstTry(d *api.JobDetail) uint32 { return oneOf(slices.All(d.Attempts)) }

// LastTry is described at firstTry.
func LastTry(d *api.JobDetail) uint32 { return oneOf(slices.Backward(d.Attempts)) }

func oneOf(tries iter.Seq2[int, api.Attempt]) (number uint32) {
	for _, at := range tries {
		if number = at.Attempt; ran(at) {
			break
		}
	}
	return number
}

// ran says that a program of a try began, or may have.
func ran(at api.Attempt) bool {
	return slices.ContainsFunc(at.Ranks, func(r api.Rank) bool {
		return r.Phase == string(node.PhaseRunning) || r.Exit != nil && (r.Exit.StartedMS > 0 || r.Exit.Reason == job.NodeFail)
	})
}

// Tail copies a job's log to Out, that of one try after the other, until the job
// has ended and all was copied.
type Tail struct {
	App     *cli.App
	ID      string
	Options client.LogOptions // Try is the first; Offset is where to go on
	link    watch.Link
	source  Copied
	copied  bool // anything of the present try
	whole   bool // all of it was
}

// Run copies until then.
func (t *Tail) Run(ctx context.Context) error {
	t.link.App = t.App
	for {
		var err error
		if !t.whole {
			if err = t.copy(ctx); err != nil && !later(err) && !client.IsUnavailable(err) {
				return err
			}
		}
		d, jobErr := t.App.Client.Job(ctx, t.ID, client.JobOptions{})
		if jobErr != nil {
			if err := t.link.Lost(ctx, jobErr); err != nil {
				return err
			}
			continue
		}
		if over(d, t.Options.Try) {
			done, err := t.end(ctx, d, err)
			if done || err != nil {
				return err
			}
		} else if client.IsUnavailable(err) {
			if err := t.link.Lost(ctx, err); err != nil {
				return err
			}
			continue
		}
		t.link.Back()
		if err := t.App.Sleep(ctx, logPause); err != nil {
			return err
		}
	}
}

// end takes what is left of a try that is over, and goes on to the next one, or
// says that there will be none.
func (t *Tail) end(ctx context.Context, d *api.JobDetail, err error) (done bool, _ error) {
	if !t.whole {
		if err = t.rest(ctx, err); isUnreachable(err) {
			return false, t.link.Lost(ctx, err) // and once more
		}
		t.whole = true
		if !d.State.Final() || next(d, t.Options.Try) != nil {
			t.sayEnd(d, err)
		}
	}
	to := next(d, t.Options.Try)
	switch {
	case to != nil:
		t.Options = client.LogOptions{Try: to.Attempt, Rank: t.Options.Rank, Follow: true}
		t.copied, t.whole = false, false
	case d.State.Final():
		return true, err
	}
	return false, nil
}

// sayEnd says that a try is over, and that what it wrote is lost if it is.
func (t *Tail) sayEnd(d *api.JobDetail, err error) {
	for i := range d.Attempts {
		if at := &d.Attempts[i]; at.Attempt == t.Options.Try && ran(*at) {
			if err != nil {
				t.App.Say("the log of try %d is missing: %v", at.Attempt, err)
			}
			t.App.Say("try %d of job %s ended%s", at.Attempt, jobs.ID(&d.Job), jobs.TryEnd(at))
		}
	}
}

// over says that a try has ended. Number 0 is that of a job whose tries are not
// known.
func over(d *api.JobDetail, try uint32) bool {
	if d.State.Final() || next(d, try) != nil {
		return true
	}
	for i := range d.Attempts {
		if at := &d.Attempts[i]; at.Attempt == try && !at.End.IsZero() {
			return true
		}
	}
	return false
}

// next is the first try after another that runs, ran, or may run yet; nil: there
// is none.
func next(d *api.JobDetail, try uint32) *api.Attempt {
	for i := range d.Attempts {
		if at := &d.Attempts[i]; try > 0 && at.Attempt > try && (at.End.IsZero() || ran(*at)) {
			return at
		}
	}
	return nil
}

// later says that the log may still come: there is none now.
func later(err error) bool {
	return client.IsCode(err, api.CodeNotFound) || client.IsCode(err, api.CodeConflict)
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*client.Unreachable](err)
	return ok
}

// rest takes what was written between the log's end and the try's.
func (t *Tail) rest(ctx context.Context, err error) error {
	t.Options.Follow = false
	if again := t.copy(ctx); again == nil || t.copied && !isUnreachable(again) {
		return nil
	} else if err == nil || isUnreachable(again) {
		return again
	}
	return err
}

// copy opens the log where the last one broke off and copies it to its end.
func (t *Tail) copy(ctx context.Context) error {
	log, err := t.App.Client.Log(ctx, t.ID, t.Options)
	if err != nil {
		return err
	}
	defer log.Close()
	t.link.Back()
	t.source.Say(t.App, log)
	if log.Offset >= 0 {
		t.Options.Offset, t.Options.Tail, t.Options.Since = log.Offset, 0, time.Time{}
	}
	n, err := io.Copy(t.App.Out, log)
	t.copied = t.copied || n > 0
	if t.Options.Tail == 0 && t.Options.Since.IsZero() {
		t.Options.Offset += n
	}
	return err
}
