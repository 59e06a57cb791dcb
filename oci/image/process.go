package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a worker as the store sees it.
type process struct {
	store   *Store
	cmd     *exec.Cmd
	control *net.UnixConn
	dir     string     // its directory, below the store's tmp
	said    *firstLine // on its standard error, if it died badly
	serves  atomic.Pointer[origin]
	numbers atomic.Int64
	done    chan struct{} // closed when it has ended
}

// gone says that a worker has ended.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end kills a worker; it has nothing to save.
func (p *process) end() { _ = p.cmd.Process.Kill() }

// number is a name for a new directory of this worker.
func (p *process) number() string { return strconv.FormatInt(p.numbers.Add(1), 10) }

const (
	giveUp   = 5 * time.Second // for a worker to break off a call
	maxReply = 64 << 20        // bytes of one reply: the directories of a layer may be many
)

// call makes a request and returns the last reply. When ctx ends the worker is
// told to break off, and waited for, so that it writes no more.
func (p *process) call(ctx context.Context, req request, seen func(int64)) (reply, error) {
	ours, theirs, err := socketpair(unix.SOCK_STREAM)
	if err != nil {
		return reply{}, classifyLocal(err)
	}
	defer ours.Close()
	err = sendPacket(p.control, packet{Call: true}, theirs)
	theirs.Close()
	if err != nil {
		return reply{}, p.died(err)
	}
	defer context.AfterFunc(ctx, func() {
		_ = ours.CloseWrite()
		_ = ours.SetReadDeadline(time.Now().Add(giveUp))
	})()
	if err := json.NewEncoder(ours).Encode(req); err != nil && ctx.Err() == nil {
		return reply{}, p.died(err)
	}
	bounded := &io.LimitedReader{R: ours}
	for in := json.NewDecoder(bounded); ; {
		bounded.N = maxReply
		var r reply
		if err := in.Decode(&r); err != nil {
			if ctx.Err() != nil {
				p.end() // it did not break off
				return r, context.Cause(ctx)
			}
			return r, p.died(err)
		}
		switch {
		case !r.Done && seen != nil:
			seen(r.Bytes)
		case r.Done && r.Error != nil:
			return r, r.Error.err()
		case r.Done:
			return r, nil
		}
	}
}

// died is the error of a call that the worker's end broke off. What it read
// may have made it end; that another may do better is worth a try.
func (p *process) died(err error) error {
	p.end()
	<-p.done
	if said := p.said.String(); said != "" {
		err = errors.New(said)
	}
	e := wrap(Internal, err, "the process that pulls it ended")
	e.Temporary = true
	return e
}

// serve answers what the worker asks, until it ends.
func (p *process) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var asked sync.WaitGroup
	slots := make(chan struct{}, maxAsks)
	for {
		q, file, err := receivePacket(p.control)
		if file != nil {
			file.Close() // it has nothing to give
		}
		if err != nil {
			break
		}
		slots <- struct{}{}
		asked.Go(func() {
			p.answer(ctx, q)
			<-slots
		})
	}
	cancel()
	asked.Wait()
	p.end()
	_ = p.cmd.Wait()
	p.control.Close()
	os.RemoveAll(p.dir)
	close(p.done)
}

// maxAsks is how many questions of one worker are answered at the same time.
const maxAsks = 32

// answer does one thing that a worker cannot do.
func (p *process) answer(ctx context.Context, q packet) {
	back := packet{Answer: q.Ask}
	var err error
	switch o := p.serves.Load(); {
	case o == nil:
		err = errors.New("no pull has begun")
	case q.Dial != "":
		var conn net.Conn
		if conn, err = p.store.dial(ctx, q.Dial); err == nil {
			defer conn.Close()
			if socket, ok := conn.(syscall.Conn); ok {
				_ = sendPacket(p.control, back, socket)
				return
			}
			err = errors.New("the connection is no socket")
		}
	case q.Open != "":
		var f *os.File
		if f, err = o.open(q.Open); err == nil {
			defer f.Close()
			_ = sendPacket(p.control, back, f)
			return
		}
	default:
		back.Bytes, back.Entries, err = p.store.promise(o, q.Bytes, q.Entries)
	}
	back.Error = wireErrorOf(err)
	_ = sendPacket(p.control, back, nil)
}

// dial connects for a worker.
func (s *Store) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := s.config.Dial(ctx, "tcp", addr)
	if errors.Is(err, ErrForbidden) {
		return nil, wrap(Denied, err, "it leads to %s, which is inside this site, where no images may be pulled from; the node's administrator can allow the host", addr)
	}
	return conn, err
}

func (o *origin) open(name string) (*os.File, error) {
	if o.files == nil {
		return nil, errors.New("the image is not local")
	}
	return o.files.open(name)
}

// workers are the processes that pull, and those that wait for another pull of
// the same login.
type workers struct {
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

// takeWorker returns a worker that has served that login only, or a new one.
func (s *Store) takeWorker(ctx context.Context, key string) (*process, error) {
	w := &s.workers
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	for i := len(w.idle) - 1; i >= 0; i-- {
		found := w.idle[i]
		if found.key != key || found.proc.gone() {
			continue
		}
		found.timer.Stop()
		w.idle = append(w.idle[:i:i], w.idle[i+1:]...)
		w.mu.Unlock()
		return found.proc, nil
	}
	w.mu.Unlock()
	p, err := s.startWorker()
	if err != nil {
		<-w.slots
		return nil, wrap(Internal, err, "the process that pulls images cannot be started on this node: %v", err)
	}
	return p, nil
}

// giveWorker takes a worker back, for the next pull of that login.
func (s *Store) giveWorker(key string, p *process) {
	w := &s.workers
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

// endWorkers kills all and lets no more start.
func (s *Store) endWorkers() {
	w := &s.workers
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

// add answers what a worker that was started asks, until it ends.
func (w *workers) add(ctx context.Context, p *process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the store is closed")
	}
	w.all[p] = true
	w.serving.Go(func() { // ends with the worker, at the latest in Close
		p.serve(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, p)
	})
	return nil
}

// firstLine keeps the beginning of what is written to it.
type firstLine struct {
	mu   sync.Mutex
	text strings.Builder
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if room := 200 - f.text.Len(); room > 0 {
		f.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (f *firstLine) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, _ := strings.Cut(f.text.String(), "\n")
	return line
}
