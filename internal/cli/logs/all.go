package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
)

// all prints the logs of all ranks of a job, each line behind the rank's
// number: one log after the other, or with Follow as the lines come.
func (l *Log) all(ctx context.Context, a *cli.App, o client.LogOptions) error {
	id := l.ID
	see := func(d *api.JobDetail) bool { return follow.HasLog(d) || !o.Follow }
	d, err := watch.Job(ctx, a, id, see)
	if err != nil {
		return follow.Interrupted(a, err, id, d)
	}
	if o.Follow && o.Try == 0 {
		o.Try = follow.LastTry(d)
	}
	ranks := 1
	for _, at := range d.Attempts { // all have as many
		ranks = len(at.Ranks)
	}
	var mu sync.Mutex
	errs := make([]error, ranks)
	var running sync.WaitGroup
	for rank := range ranks {
		out := &linePrefix{mu: &mu, out: a.Out, prefix: fmt.Sprintf("%*d: ", len(strconv.Itoa(ranks-1)), rank)}
		t := &follow.Tail{App: a.Quiet(), ID: id, Options: o}
		chosen := &filter{out: out, pattern: l.pattern}
		t.App.Out, t.Options.Rank = chosen, rank
		if rank == 0 {
			t.App.Err = a.Err // one of them tells of broken connections
		}
		copyLog := func() {
			if o.Follow {
				errs[rank] = t.Run(ctx)
			} else {
				errs[rank] = printLog(ctx, t.App, id, t.Options)
			}
			errs[rank] = errors.Join(errs[rank], chosen.end(), out.end())
		}
		if o.Follow {
			running.Go(copyLog) // awaited below
		} else {
			copyLog()
		}
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return follow.Interrupted(a, err, id, d)
	}
	return nil
}

// maxPrefixed is the longest line that is kept together, in bytes.
const maxPrefixed = 64 << 10

// linePrefix writes whole lines behind a prefix, so that those of several
// writers do not mix.
type linePrefix struct {
	mu     *sync.Mutex // guards out
	out    io.Writer
	prefix string
	line   []byte // has no end yet
}

func (w *linePrefix) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		n = min(n, maxPrefixed)
		w.line = append(w.line, rest[:n]...)
		rest = rest[n:]
		if w.line[len(w.line)-1] == '\n' || len(w.line) >= maxPrefixed {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (w *linePrefix) flush() error {
	if w.line[len(w.line)-1] != '\n' {
		w.line = append(w.line, '\n')
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append([]byte(w.prefix), w.line...))
	w.line = w.line[:0]
	return err
}

// end writes a last line that has no end.
func (w *linePrefix) end() error {
	if len(w.line) == 0 {
		return nil
	}
	return w.flush()
}
