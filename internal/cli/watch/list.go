package watch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/client"
)

// readAnew is how old a list that is shown live may become although nothing
// has happened: expected starts and priorities change by themselves.
const readAnew = 30 * time.Second

// Interval is how often -i and --watch draw; 0: neither was given.
func Interval(seconds int, live bool) (time.Duration, error) {
	if seconds < 0 || seconds > 86400 {
		return 0, exit.Usagef("-i %d: want seconds, 1 to 86400", seconds)
	}
	if live && seconds == 0 {
		seconds = 2
	}
	return time.Duration(seconds) * time.Second, nil
}

// List is a list that is shown live.
type List struct {
	Changes  client.EventFilter // what makes it fetch again
	Interval time.Duration
	Fetch    func() error
	Draw     func() error
}

// Run draws the list at its interval until the user stops it. It fetches it when
// something has changed, so that an idle list costs the controller nothing. A
// controller that goes away for a while does not end it.
func (l List) Run(ctx context.Context, a *cli.App) error {
	ctx, stop := context.WithCancel(ctx)
	changed, done := make(chan struct{}, 1), make(chan struct{})
	go func() { // ended by stop
		defer close(done)
		listenAlways(ctx, a, l.Changes, changed)
	}()
	defer func() { stop(); <-done }()
	var fetched time.Time // zero: at once
	lost := false
	for {
		select {
		case <-changed:
			fetched = time.Time{}
		default:
		}
		var err error
		if now := a.Now(); fetched.IsZero() || now.Sub(fetched) >= readAnew {
			if err = l.Fetch(); err == nil {
				fetched = now
			}
		}
		switch {
		case err == nil:
			lost = false
			if err := frame(a, l.Draw); err != nil {
				return err
			}
		case !client.IsUnavailable(err):
			return leave(ctx, err)
		default:
			fetched = time.Time{}
			if !lost {
				a.Say("%s", a.Now().Format("2006-01-02 15:04:05")+" "+strings.TrimSpace(err.Error()))
			}
			lost = true
		}
		if err := a.Sleep(ctx, l.Interval); err != nil {
			return nil // the user has seen enough
		}
	}
}

// leave makes Ctrl-C in the middle of a request a proper end.
func leave(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listenAlways says when something has changed, and when it may have: after
// each break of the connection.
func listenAlways(ctx context.Context, a *cli.App, f client.EventFilter, changed chan<- struct{}) {
	var pauses client.Backoff
	for ctx.Err() == nil {
		for _, err := range a.Client.Events(ctx, f) {
			if err == nil {
				pauses.Reset()
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		if client.Sleep(ctx, pauses.Next()) != nil {
			return
		}
	}
}

// frame draws one picture. On a terminal that can it replaces the one before, in place,
// and is cut to its height, so that its head stays in sight.
func frame(a *cli.App, draw func() error) error {
	stamp := a.Now().Format("2006-01-02 15:04:05")
	if a.Output.JSON || a.Output.IDs {
		return draw()
	}
	if !a.Term.Out || a.Term.Dumb {
		fmt.Fprintln(a.Out, stamp)
		return draw()
	}
	if a.Measure != nil {
		a.Term = a.Measure()
	}
	real, realErr, errWidth := a.Out, a.Err, a.Term.ErrWidth
	var buf bytes.Buffer
	a.Out, a.Err, a.Term.ErrWidth = &buf, &buf, a.Term.Width
	err := draw()
	a.Out, a.Err, a.Term.ErrWidth = real, realErr, errWidth
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(stamp+"\n"+buf.String(), "\n"), "\n")
	if most := a.Term.Height; most > 1 && len(lines) > most {
		left := len(lines) - (most - 1)
		more := fmt.Sprintf("... and %d more lines: a filter shows fewer, gqueue alone shows all", left)
		if a.Term.Width > 0 {
			more = human.Cut(more, a.Term.Width)
		}
		lines = append(lines[:most-1], more)
	}
	_, err = io.WriteString(a.Out, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J")
	return err
}
