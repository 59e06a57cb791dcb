package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gbatch/oci/image/socket"

	"golang.org/x/sys/unix"
)

// workers are the processes that pull, and those that wait for another pull of
// the same login.
type workers struct {
	base context.Context // of what they ask; ends in the store's Close
	dir  string          // below which each has one of its own
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	disk *disk

	slots   chan struct{}  // as many as may pull
	serving sync.WaitGroup // for what is asked by workers, until the last has ended

	mu     sync.Mutex
	all    map[*process]bool
	idle   []idleWorker // oldest first
	closed bool
}

type idleWorker struct {
	key   string
	proc  *process
	timer *time.Timer
}

func newWorkers(base context.Context, dir string, config Config, d *disk) *workers {
	return &workers{base: base, dir: dir, dial: config.Dial, disk: d, slots: make(chan struct{}, maxWorkers), all: map[*process]bool{}}
}

// take returns a worker that has served that login only, or a new one.
func (w *workers) take(ctx context.Context, key string) (*process, error) {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	for i := len(w.idle) - 1; i >= 0; i-- {
		found := w.idle[i]
		if found.key != key || found.proc.gone() || !found.proc.hasDir() {
			continue
		}
		found.timer.Stop()
		w.idle = append(w.idle[:i:i], w.idle[i+1:]...)
		w.mu.Unlock()
		return found.proc, nil
	}
	w.mu.Unlock()
	p, err := w.start()
	if err != nil {
		<-w.slots
		return nil, wrap(Internal, err, "the process that pulls images cannot be started on this node: %v", err)
	}
	return p, nil
}

// give takes a worker back, for the next pull of that login.
func (w *workers) give(key string, p *process) {
	<-w.slots
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || p.gone() {
		p.end()
		return
	}
	w.idle = append(w.idle, idleWorker{key, p, time.AfterFunc(workerIdle, p.end)})
	for len(w.idle) > maxIdleWorkers {
		w.idle[0].timer.Stop()
		w.idle[0].proc.end()
		w.idle = w.idle[1:]
	}
}

// end kills all and lets no more start.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, i := range w.idle {
		i.timer.Stop()
	}
	for p := range w.all {
		p.end()
	}
}

// start starts a worker that has a directory of its own.
func (w *workers) start() (*process, error) {
	dir, err := os.MkdirTemp(w.dir, "")
	if err != nil {
		return nil, err
	}
	p := &process{workers: w, dir: dir, said: &firstLine{}, done: make(chan struct{})}
	control, theirs, err := socket.Pair(unix.SOCK_SEQPACKET)
	if err == nil {
		p.control = control
		p.cmd = workerCommand(theirs, p.said)
		err = p.cmd.Start()
		theirs.Close()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err = p.makeReady(); err == nil {
		err = w.add(p)
	}
	if err != nil {
		p.end()
		_ = p.cmd.Wait()
		os.RemoveAll(dir)
		if said := p.said.String(); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, err
	}
	return p, nil
}

// add answers what a worker that was started asks, until it ends.
func (w *workers) add(p *process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the store is closed")
	}
	w.all[p] = true
	w.serving.Go(func() { // ends with the worker, at the latest in Close
		p.serve(w.base)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, p)
	})
	return nil
}

// connect connects for a worker.
func (w *workers) connect(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := w.dial(ctx, "tcp", addr)
	if errors.Is(err, ErrForbidden) {
		return nil, wrap(Denied, err, "it leads to %s, which is inside this site, where no images may be pulled from; the node's administrator can allow the host by images.hosts in gnoded.yaml", addr)
	}
	return conn, err
}
