package cli

import (
	"context"
	"io"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// logPause is kept before a log is asked for again that has ended although its
// job has not, or that is not there yet.
const logPause = 500 * time.Millisecond

// LogOptions are which log glog prints and how.
type LogOptions struct {
	Follow bool
	Tail   int64 // lines from the end; 0: all
	Rank   int
	All    bool   // ranks, each line behind the rank's number
	Since  string // as parsePast takes it; empty: all
	since  time.Time
}

// Log prints a job's log as it is. With Follow it goes on until the job has
// ended, over restarts of the controller and over tries of the job.
func (a *App) Log(ctx context.Context, id string, o LogOptions) error {
	if o.Since != "" {
		var err error
		if o.since, err = a.parsePast(o.Since, time.Local); err != nil {
			return usageError("--since: %w", err)
		}
		o.Since = ""
	}
	if o.Tail > 0 && !o.since.IsZero() {
		return usageError("name either --tail or --since, not both")
	}
	if o.All {
		return a.logAll(ctx, id, o)
	}
	if !o.Follow {
		log, err := a.Client.Log(ctx, id, client.LogOptions{Tail: o.Tail, Since: o.since, Rank: o.Rank})
		if err != nil {
			return err
		}
		defer log.Close()
		_, err = io.Copy(a.Out, log)
		return err
	}
	d, err := a.watch(ctx, id, func(d *api.JobDetail) bool { return hasLog(d) })
	if err != nil {
		return a.interrupted(err, id, d)
	}
	t := &tail{app: a, id: id, options: client.LogOptions{Tail: o.Tail, Since: o.since, Rank: o.Rank, Follow: true}, tries: len(d.Attempts)}
	if err := t.run(ctx); err != nil {
		return a.interrupted(err, id, d)
	}
	return nil
}

// hasLog says that a try of the job has begun to run. Of an array, each task
// has a log of its own.
func hasLog(d *api.JobDetail) bool {
	return d.Tasks == nil && !d.Started.IsZero() && !d.State.Pending()
}

// tail copies a job's log to Out until the job has ended and all was copied.
type tail struct {
	app     *App
	id      string
	options client.LogOptions // Offset is where to go on
	tries   int               // attempts that the job had when the log was opened
	link    link
	copied  bool // anything, ever
}

func (t *tail) run(ctx context.Context) error {
	t.link.app = t.app
	for {
		err := t.copy(ctx)
		if err != nil && !t.later(err) {
			if err := t.link.lost(ctx, err); err != nil {
				return err
			}
			continue
		}
		d, jobErr := t.app.Client.Job(ctx, t.id, client.JobOptions{})
		if jobErr != nil {
			if err := t.link.lost(ctx, jobErr); err != nil {
				return err
			}
			continue
		}
		t.link.back()
		if d.State.Final() {
			return t.rest(ctx, err)
		}
		if len(d.Attempts) > t.tries { // it runs again, with a log of its own
			t.tries = len(d.Attempts)
			t.options.Offset, t.options.Tail, t.options.Since = 0, 0, time.Time{}
		}
		if err := t.app.Sleep(ctx, logPause); err != nil {
			return err
		}
	}
}

// later says that the log may still come: there is none now.
func (t *tail) later(err error) bool {
	return client.IsCode(err, api.CodeNotFound) || client.IsCode(err, api.CodeConflict)
}

// rest takes what was written between the log's end and the job's.
func (t *tail) rest(ctx context.Context, err error) error {
	t.options.Follow = false
	if again := t.copy(ctx); again == nil || t.copied {
		return nil
	} else if err == nil {
		return again
	}
	return err
}

// copy opens the log where the last one broke off and copies it to its end.
func (t *tail) copy(ctx context.Context) error {
	log, err := t.app.Client.Log(ctx, t.id, t.options)
	if err != nil {
		return err
	}
	defer log.Close()
	t.link.back()
	if log.Offset >= 0 {
		t.options.Offset, t.options.Tail, t.options.Since = log.Offset, 0, time.Time{}
	}
	n, err := io.Copy(t.app.Out, log)
	t.copied = t.copied || n > 0
	if t.options.Tail == 0 && t.options.Since.IsZero() {
		t.options.Offset += n
	}
	return err
}
