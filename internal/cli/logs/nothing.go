package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
)

// counter counts what a log has.
type counter struct {
	out io.Writer
	n   int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.n += int64(n)
	return n, err
}

// sayNothing says why nothing was printed, where nothing was: silence would leave
// open whether the program was silent or the log is lost. It goes to people alone;
// what cannot be asked is no error of the log.
func (o *Log) sayNothing(ctx context.Context, a *cli.App, printed, read int64) {
	switch {
	case printed > 0:
		return
	case o.pattern != nil && (o.All || read > 0):
		a.Say("no line of the log matches %q", o.Grep)
		return
	}
	if d, err := a.Client.Job(ctx, o.ID, client.JobOptions{}); err == nil {
		a.Say("%s", o.whyNothing(d))
	}
}

// whyNothing is why the log of a job that has one is empty.
func (o *Log) whyNothing(d *api.JobDetail) string {
	try := o.attempt(d)
	id := jobs.ID(&d.Job)
	switch {
	case o.Since != "":
		return fmt.Sprintf("job %s, %s, has written nothing since %s", id, d.State, o.Since)
	case try == nil:
		return fmt.Sprintf("job %s is %s and has written nothing", id, d.State)
	}
	if r := o.neverBegan(try); r != nil {
		return fmt.Sprintf("try %d of job %s wrote nothing, as its program never began: %s", try.Attempt, id, cmp.Or(r.Exit.Message, d.ReasonText, string(r.Exit.Reason)))
	}
	if try.End.IsZero() {
		return fmt.Sprintf("job %s is %s and its program has written nothing yet to its standard output or error", id, d.State)
	}
	return fmt.Sprintf("the program of job %s wrote nothing to its standard output or error in its try %d", id, try.Attempt)
}

// neverBegan is the first of the ranks whose log was asked for, where the program of none
// of them began; else nil.
func (o *Log) neverBegan(try *api.Attempt) (first *api.Rank) {
	for i, r := range try.Ranks {
		if !o.All && i != o.Rank {
			continue
		}
		if r.Exit == nil || r.Exit.StartedMS != 0 {
			return nil
		}
		first = cmp.Or(first, &r)
	}
	return first
}

// attempt is the one whose log was asked for, nil if it is not known.
func (o *Log) attempt(d *api.JobDetail) *api.Attempt {
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		if o.Try == 0 || d.Attempts[i].Attempt == uint32(o.Try) {
			return &d.Attempts[i]
		}
	}
	return nil
}
