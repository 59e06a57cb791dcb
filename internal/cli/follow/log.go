package follow

import (
	"context"
	"io"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
)

// logPause is kept before a log is asked for again that has ended although its
// job has not, or that is not there yet.
const logPause = 500 * time.Millisecond

// HasLog says that a try of the job has begun to run. Of an array, each task
// has a log of its own.
func HasLog(d *api.JobDetail) bool {
	return d.Tasks == nil && !d.Started.IsZero() && !d.State.Pending()
}

// Tail copies a job's log to Out until the job has ended and all was copied.
type Tail struct {
	App     *cli.App
	ID      string
	Options client.LogOptions // Offset is where to go on
	Tries   int               // attempts that the job had when the log was opened
	link    watch.Link
	copied  bool // anything, ever
}

// Run copies until then.
func (t *Tail) Run(ctx context.Context) error {
	t.link.App = t.App
	for {
		err := t.copy(ctx)
		if err != nil && !t.later(err) {
			if err := t.link.Lost(ctx, err); err != nil {
				return err
			}
			continue
		}
		d, jobErr := t.App.Client.Job(ctx, t.ID, client.JobOptions{})
		if jobErr != nil {
			if err := t.link.Lost(ctx, jobErr); err != nil {
				return err
			}
			continue
		}
		t.link.Back()
		if d.State.Final() {
			return t.rest(ctx, err)
		}
		if len(d.Attempts) > t.Tries { // it runs again, with a log of its own
			t.Tries = len(d.Attempts)
			t.Options.Offset, t.Options.Tail, t.Options.Since = 0, 0, time.Time{}
		}
		if err := t.App.Sleep(ctx, logPause); err != nil {
			return err
		}
	}
}

// later says that the log may still come: there is none now.
func (t *Tail) later(err error) bool {
	return client.IsCode(err, api.CodeNotFound) || client.IsCode(err, api.CodeConflict)
}

// rest takes what was written between the log's end and the job's.
func (t *Tail) rest(ctx context.Context, err error) error {
	t.Options.Follow = false
	if again := t.copy(ctx); again == nil || t.copied {
		return nil
	} else if err == nil {
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
