package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Sink is where data goes to.
type Sink interface {
	// Put stores a file under a name, instead of what may be there. j says how
	// far an earlier try came, and is told how far this one does.
	Put(ctx context.Context, w *sending, f *os.File, o Object, j *journal) error
	Close()
}

// Send is one transfer from this machine.
type Send struct {
	URI     string // for messages
	Sink    Sink
	From    Dir      // of the files; what is opened never lies outside of it
	Names   []string // the files, or one: Single
	Single  bool     // the file goes to the sink's own name
	Journal string   // file that remembers what was sent; made

	// Room is asked once, with the bytes of all files, before the first is sent.
	Room func(bytes int64) error
	// Progress, if set, is called from several goroutines: bytes that are there,
	// and all.
	Progress func(done, total int64)
}

// maxFailed is how many files may fail before the rest is not tried.
const maxFailed = 10

// sending is a transfer under way.
type sending struct {
	Send
	c     *Client
	slots chan struct{} // one for each request at once
	total int64
	done  atomic.Int64

	mu     sync.Mutex // guards what follows
	failed []string
	first  error
}

// Send sends files. Called again with the same Journal it leaves out what is
// there, and goes on with large files. The error names the files that are not
// there in the end.
func (c *Client) Send(ctx context.Context, s Send) error {
	w := &sending{Send: s, c: c, slots: make(chan struct{}, max(1, c.Parallel))}
	err := w.run(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Name(s.URI, err)
}

func (w *sending) run(ctx context.Context) error {
	j, err := openJournal(w.Journal)
	if err != nil {
		return local(err)
	}
	defer j.close()
	var list []Object
	for _, name := range w.Names {
		o, err := w.From.object(name)
		if err != nil {
			return err
		}
		list = append(list, o)
		w.total += o.Size
	}
	if w.Room != nil {
		if err := w.Room(w.total); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, w.c.Parallel))
	for _, o := range list {
		if j.sent(o) {
			w.tell(o.Size)
			continue
		}
		group.Go(func() error { return w.one(ctx, o, j) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return w.outcome(len(list)) // nobody else is left
}

// one sends a file. Its failure is not the others', unless all would fail so.
func (w *sending) one(ctx context.Context, o Object, j *journal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := w.From.Open(o.Name)
	if err == nil {
		named := o
		if w.Single {
			named.Name = ""
		}
		err = w.Sink.Put(ctx, w, f, named, j)
		f.Close()
	}
	if err == nil {
		return local(j.add(entry{Name: o.Name, Version: o.Version, Done: true}))
	}
	if ctx.Err() != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, o.Name)
	if w.first == nil {
		w.first = err
	}
	if len(w.failed) >= maxFailed {
		return w.outcome(len(w.Names))
	}
	return nil
}

func (w *sending) outcome(all int) error {
	if w.first == nil {
		return nil
	}
	kind, text := Unreachable, plain(w.first)
	if e, ok := errors.AsType[*Error](w.first); ok {
		kind, text = e.Kind, e.Text
	}
	slices.Sort(w.failed)
	shown := w.failed[:min(len(w.failed), 5)]
	names := strings.Join(shown, ", ")
	if n := len(w.failed) - len(shown); n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	return fail(kind, "%s (not saved, of %d files: %s)", text, all, names)
}

// request makes one of the requests of a transfer, again if need be: body
// counts what it reads, and what a try that failed has read is taken back.
func (w *sending) request(ctx context.Context, try func(context.Context, wrapper) error) error {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.c.retry(ctx, func(ctx context.Context) (bool, error) {
		var moved atomic.Int64
		ctx, counted, stop := w.c.watch(ctx, func(n int) {
			moved.Add(int64(n))
			w.tell(int64(n))
		})
		defer stop()
		err := try(ctx, counted)
		if err != nil {
			w.tell(-moved.Load())
		}
		return false, because(ctx, err)
	})
}

func (w *sending) tell(n int64) {
	done := w.done.Add(n)
	if w.Progress != nil {
		w.Progress(done, w.total)
	}
}
