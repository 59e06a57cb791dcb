package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/annex"
	"gbatch/oci/held"
	"gbatch/oci/message"
	"gbatch/oci/result"
	"gbatch/oci/shims"
)

// Container is a daemon's hold on a container that lives. Dropping it changes
// nothing for the container. All methods are safe for concurrent use.
type Container struct {
	dir  string
	conn *net.UnixConn
	cmd  *exec.Cmd     // nil when another process started the shim, or a pool has it
	done chan struct{} // closed when the shim has died

	mu      sync.Mutex // guards what follows, and writes to conn
	seq     uint64
	waiting map[uint64]chan reply
	phase   Phase
	pid     int
	part    string
	changed chan struct{} // closed and replaced at each new phase
}

func newContainer(dir string, conn *net.UnixConn, cmd *exec.Cmd) *Container {
	c := &Container{
		dir: dir, conn: conn, cmd: cmd, done: make(chan struct{}), phase: PhaseStarting,
		waiting: map[uint64]chan reply{}, changed: make(chan struct{}),
	}
	go c.listen() // ends with the shim: its death closes the connection
	return c
}

func (c *Container) listen() {
	in := message.NewReader(c.conn)
	for {
		line, files, err := in.Next()
		message.CloseAll(files)
		if err != nil {
			break
		}
		if r, err := parseReply(line); err == nil {
			c.receive(r)
		}
	}
	c.conn.Close()
	c.awaitDeath()
	c.mu.Lock()
	for seq, ch := range c.waiting {
		close(ch)
		delete(c.waiting, seq)
	}
	c.mu.Unlock()
	close(c.done)
}

// awaitDeath returns when the process has ended, or at the latest when nothing
// holds its lock. Waiting for the connection first costs no thread meanwhile.
func (c *Container) awaitDeath() {
	if c.cmd != nil {
		_ = c.cmd.Wait() // its code says nothing; the exit file does
		return
	}
	held.Await(c.dir)
}

func parseReply(line []byte) (reply, error) {
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return reply{}, fmt.Errorf("read the shim's answer: %w", err)
	}
	return r, nil
}

func (c *Container) receive(r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Seq != 0 {
		if ch, ok := c.waiting[r.Seq]; ok {
			delete(c.waiting, r.Seq)
			ch <- r // has room for one
		}
		return
	}
	c.phase, c.pid, c.part = r.Phase, r.PID, r.Part
	close(c.changed)
	c.changed = make(chan struct{})
}

// Dir returns the container's directory.
func (c *Container) Dir() string { return c.dir }

// Phase returns how far the container has come, as last heard, and a channel
// that is closed at the next change.
func (c *Container) Phase() (Phase, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase, c.changed
}

// PID returns the first process's number on the host, 0 unless it runs.
func (c *Container) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Part is the name of the part that runs; "": the last.
func (c *Container) Part() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.part
}

// Done is closed when the shim has died, or is done with the container as if
// it had. Exit then tells the result.
func (c *Container) Done() <-chan struct{} { return c.done }

// wait waits for Done or the context's end.
func (c *Container) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Exit returns the result of a container whose shim has died. A shim that was
// killed left none: its container is then killed too, and the result is Lost.
func (c *Container) Exit() (result.Exit, error) {
	select {
	case <-c.done:
	default:
		return result.Exit{}, errors.New("read exit: the container still runs")
	}
	exit, err := result.Read(c.dir)
	if err == nil {
		return exit, nil
	}
	if _, _, err := Adopt(c.dir); err != nil {
		return result.Exit{}, err
	}
	if exit, err = result.Read(c.dir); err == nil {
		return exit, nil
	}
	// The shim died before it began anything.
	return result.Exit{}, fmt.Errorf("container %s: %w", filepath.Base(c.dir), ErrNeverStarted)
}

// ErrNeverStarted says that a shim died before the user's code could run: the
// container may be started again, in a new directory.
var ErrNeverStarted = errors.New("the shim died before the container began")

// callTimeout bounds how long a shim may take to answer. A kill waits for the
// processes' end first.
var callTimeout = 15 * time.Second

// ErrGone answers a request to a shim that has died.
var ErrGone = errors.New("the container has ended")

func (c *Container) call(ctx context.Context, req request) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.seq++
	req.Version, req.Seq = protocolVersion, c.seq
	c.waiting[req.Seq] = ch
	err := message.Send(c.conn, req)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, req.Seq)
		c.mu.Unlock()
	}()
	if err != nil {
		return fmt.Errorf("%s: %w", req.Op, ErrGone)
	}
	select {
	case r, ok := <-ch:
		if !ok {
			return fmt.Errorf("%s: %w", req.Op, ErrGone)
		}
		if r.Error != "" {
			return fmt.Errorf("%s: %s", req.Op, r.Error)
		}
		return nil
	case <-c.done:
		return fmt.Errorf("%s: %w", req.Op, ErrGone)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", req.Op, ctx.Err())
	}
}

// Signal sends sig to the user's program, whatever shell or init stands before
// it; with SignalFirst to the first process. It is an error while the container starts.
func (c *Container) Signal(sig syscall.Signal) error {
	return c.call(context.Background(), request{Op: opSignal, Signal: int(sig)})
}

// Kill ends every process of the container, or keeps it from starting.
func (c *Container) Kill() error {
	err := c.call(context.Background(), request{Op: opKill})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Stop sends sig, waits up to grace for the container's end and kills what is
// left. A shim that does not answer is killed first. It returns once the shim has died, or the context ended before.
func (c *Container) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	if grace > 0 && sig != unix.SIGKILL {
		err := c.call(ctx, request{Op: opStop, Signal: int(sig)})
		if err == nil {
			timer := time.NewTimer(grace)
			defer timer.Stop()
			select {
			case <-c.done:
				return nil
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	err := c.call(ctx, request{Op: opKill})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = shims.Kill(c.dir, fileLock)
	}
	if err != nil && !errors.Is(err, ErrGone) {
		return err
	}
	return c.wait(ctx)
}

// Annex begins a container in this one's limits and network, with its user, devices and
// mounts; see package annex. It ends with this one at the latest. Its first process has the
// file as the first one after standard error. The context bounds the wait for its begin.
func (c *Container) Annex(ctx context.Context, q annex.Request, channel *os.File) error {
	conn, err := dialShim(c.dir)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := message.Send(conn, request{Version: protocolVersion, Seq: 1, Op: opAnnex, Annex: &q}, channel); err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Now().Add(annexTimeout))
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, files, err := (&ExecProcess{conn: conn, in: message.NewReader(conn)}).answer()
	message.CloseAll(files)
	return err
}

// annexTimeout bounds how long one may take to begin: what it mounts may be far away.
const annexTimeout = 2 * time.Minute

// Pause freezes the container's processes; Resume lets them go on.
func (c *Container) Pause() error { return c.call(context.Background(), request{Op: opPause}) }

// Resume undoes Pause.
func (c *Container) Resume() error { return c.call(context.Background(), request{Op: opResume}) }

// Update changes the limits that are set in l and keeps the others.
func (c *Container) Update(l cgroups.Limits) error {
	return c.call(context.Background(), request{Op: opUpdate, Limits: &l})
}

// Stats returns what the container uses. It asks the kernel, not the shim.
func (c *Container) Stats() (cgroups.Stats, error) {
	group, err := groupOf(c.dir)
	if err != nil {
		return cgroups.Stats{}, err
	}
	return group.Stats()
}
