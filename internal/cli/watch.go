package cli

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// pollHold is how long the controller is asked to hold a poll open.
const pollHold = 25 * time.Second

// pollPause is kept between polls that brought nothing, should a controller
// not hold them open.
const pollPause = time.Second

// watch reports each change of a job to see, until see says to stop or the job
// has ended. It outlives restarts of the controller: it says once that it
// waits, and once that it is back.
func (a *App) watch(ctx context.Context, id string, see func(*api.JobDetail) (stop bool)) (*api.JobDetail, error) {
	link := &link{app: a}
	var last *api.JobDetail
	var o client.JobOptions
	for {
		asked := a.Now()
		d, err := a.Client.Job(ctx, id, o)
		if err != nil {
			if err := link.lost(ctx, err); err != nil {
				return last, err
			}
			continue
		}
		link.back()
		idle := last != nil && d.Version == last.Version
		last = d
		if !idle {
			if stop := see(d); stop || d.State.Final() {
				return d, nil
			}
		} else if a.Now().Sub(asked) < pollPause {
			if err := a.Sleep(ctx, pollPause); err != nil {
				return last, err
			}
		}
		o = client.JobOptions{Wait: pollHold, Version: d.Version}
	}
}

// link is a connection that is made again when it breaks, told to the user
// once each time.
type link struct {
	app    *App
	pauses client.Backoff
	down   bool
}

// lost waits before the next try; it returns err if trying again is of no use.
func (l *link) lost(ctx context.Context, err error) error {
	if !client.IsUnavailable(err) {
		return err
	}
	if !l.down {
		l.app.clearStatus()
		l.app.say("%v", err)
		l.app.say("the job goes on without the controller; connecting again until it is back")
	}
	l.down = true
	return l.app.Sleep(ctx, l.pauses.Next())
}

func (l *link) back() {
	if l.down {
		l.app.say("connected again")
	}
	l.down = false
	l.pauses.Reset()
}

// clearStatus removes the live status line.
func (a *App) clearStatus() {
	if a.Term.Err {
		fmt.Fprint(a.Err, "\r\x1b[K")
	}
}
