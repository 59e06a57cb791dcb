// Package watch looks at the controller again whenever something has changed
// there: at one job until it has ended, or at a list that is drawn live. It
// outlives restarts of the controller. What changes is told by the controller's
// stream of events; nothing is asked again and again without it.
package watch

import (
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/client"
)

// lookAgain is how often a job that waits is looked at although nothing has
// happened to it: its place in the queue and its expected start depend on
// others.
const lookAgain = 5 * time.Second

// Job reports each change of a job to see, until see says to stop or the job
// has ended. It outlives restarts of the controller: it says once that it
// waits, and once that it is back.
func Job(ctx context.Context, a *cli.App, id string, see func(*api.JobDetail) (stop bool)) (*api.JobDetail, error) {
	w := &watcher{app: a, id: id, see: see, link: Link{App: a}}
	for {
		done, err := w.listen(ctx)
		if done {
			return w.last, nil
		}
		if err := w.link.Lost(ctx, err); err != nil {
			return w.last, err
		}
	}
}

type watcher struct {
	app  *cli.App
	id   string
	see  func(*api.JobDetail) (stop bool)
	link Link
	last *api.JobDetail
}

// listen looks at the job whenever something of it has changed, until there is no need
// to any more or the connection breaks.
func (w *watcher) listen(ctx context.Context) (done bool, err error) {
	n := subscribe(ctx, w.app.Client, client.EventFilter{Jobs: []string{w.id}})
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
		w.link.Back()
		w.last = d
		if stop := w.see(d); stop || d.State.Final() {
			return true, nil
		}
	}
}

// Link is a connection that is made again when it breaks, told to the user
// once each time.
type Link struct {
	App    *cli.App
	pauses client.Backoff
	down   bool
}

// Lost waits before the next try; it returns err if trying again is of no use.
func (l *Link) Lost(ctx context.Context, err error) error {
	if !client.IsUnavailable(err) {
		return err
	}
	if !l.down {
		l.App.ClearStatus()
		l.App.Say("%v", err)
		l.App.Say("the job goes on without the controller; connecting again until it is back")
	}
	l.down = true
	return l.App.Sleep(ctx, l.pauses.Next())
}

// Back says that the connection stands.
func (l *Link) Back() {
	if l.down {
		l.App.Say("connected again")
	}
	l.down = false
	l.pauses.Reset()
}

// subscription says when something has changed, by the controller's stream of events.
// It says so once at the beginning, too: what is read after that misses nothing.
type subscription struct {
	changed chan struct{} // holds one: many changes are one
	broken  chan error    // gets the end of the stream
	stop    context.CancelFunc
	done    chan struct{}
}

// subscribe starts the one goroutine that listens; close ends it.
func subscribe(ctx context.Context, c *client.Client, f client.EventFilter) *subscription {
	n := &subscription{changed: make(chan struct{}, 1), broken: make(chan error, 1), done: make(chan struct{})}
	ctx, n.stop = context.WithCancel(ctx)
	go func() {
		defer close(n.done)
		begun := false
		for ev, err := range c.Events(ctx, f) {
			if err != nil {
				n.broken <- err
				return
			}
			if begun && ev.Kind == api.EventPing {
				continue
			}
			begun = true
			select {
			case n.changed <- struct{}{}:
			default:
			}
		}
	}()
	return n
}

func (n *subscription) close() {
	n.stop()
	<-n.done
}
