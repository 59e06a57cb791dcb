package cli

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// lookAgain is how often a job that waits is looked at although nothing has
// happened to it: its place in the queue and its expected start depend on
// others.
const lookAgain = 5 * time.Second

// watch reports each change of a job to see, until see says to stop or the job
// has ended. It outlives restarts of the controller: it says once that it
// waits, and once that it is back.
func (a *App) watch(ctx context.Context, id string, see func(*api.JobDetail) (stop bool)) (*api.JobDetail, error) {
	w := &watcher{app: a, id: id, see: see, link: link{app: a}}
	for {
		done, err := w.listen(ctx)
		if done {
			return w.last, nil
		}
		if err := w.link.lost(ctx, err); err != nil {
			return w.last, err
		}
	}
}

type watcher struct {
	app  *App
	id   string
	see  func(*api.JobDetail) (stop bool)
	link link
	last *api.JobDetail
}

// listen looks at the job whenever there is news of it, until there is no need
// to any more or the connection breaks.
func (w *watcher) listen(ctx context.Context) (done bool, err error) {
	n := w.app.subscribe(ctx, client.EventFilter{Jobs: []string{w.id}})
	defer n.close()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-n.changed:
		case <-again.C:
			if w.last == nil || !w.last.State.Pending() {
				continue
			}
		case err := <-n.broken:
			return false, err
		}
		d, err := w.app.Client.Job(ctx, w.id, client.JobOptions{})
		if err != nil {
			return false, err
		}
		w.link.back()
		w.last = d
		if stop := w.see(d); stop || d.State.Final() {
			return true, nil
		}
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
