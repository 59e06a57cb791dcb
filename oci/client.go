package oci

import (
	"context"
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
	"gbatch/oci/door"
	"gbatch/oci/held"
	"gbatch/oci/journal"
	"gbatch/oci/logs"
	"gbatch/oci/message"
	"gbatch/oci/result"
	"gbatch/oci/shims"
	"gbatch/oci/wire"
)

// Container is a daemon's hold on a container that lives. Dropping it changes
// nothing for the container. All methods are safe for concurrent use.
type Container struct {
	at   place
	conn *net.UnixConn
	cmd  *exec.Cmd     // nil when another process started the shim, or a pool has it
	done chan struct{} // closed when the shim has died

	mu      sync.Mutex // guards what follows, and writes to conn
	seq     uint64
	waiting map[uint64]chan wire.Reply
	phase   wire.Phase
	pid     int
	part    string
	changed chan struct{} // closed and replaced at each new phase
	exit    *result.Exit  // of a guest, as its shim told when it was recorded
	free    bool          // another may run in its container
}

// place is where a program is on the disk: its directory, and that of the container it runs in, which
// is another one for a guest; see Guest.
type place struct {
	dir, home, guest string
	ours             bool // a guest in a container of this process's, which another may follow
}

func newContainer(at place, conn *net.UnixConn, cmd *exec.Cmd) *Container {
	c := &Container{
		at: at, conn: conn, cmd: cmd, done: make(chan struct{}), phase: wire.PhaseStarting,
		waiting: map[uint64]chan wire.Reply{}, changed: make(chan struct{}),
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
		if r, err := wire.Parse(line); err == nil && c.receive(r) {
			break
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
	c.mu.Lock()
	told := c.exit != nil
	c.mu.Unlock()
	switch {
	case c.at.guest == "":
		held.Await(c.at.dir)
	case !told:
		journal.Await(c.at.home, c.at.guest)
	}
}

// receive takes in a word, and says whether it is the last that matters.
func (c *Container) receive(r wire.Reply) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Seq != 0 {
		if ch, ok := c.waiting[r.Seq]; ok {
			delete(c.waiting, r.Seq)
			ch <- r // has room for one
		}
		return false
	}
	c.phase, c.pid, c.part = r.Phase, r.PID, r.Part
	if c.at.guest != "" && r.Exit != nil {
		if c.exit, c.free = r.Exit, r.Free; c.at.ours && c.free {
			return true // Done says it
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
	return false
}

// Dir returns the container's directory.
func (c *Container) Dir() string { return c.at.dir }

// Home returns the directory of the container that it runs in, which is another one for a guest.
func (c *Container) Home() string { return c.at.home }

// Log opens its log.
func (c *Container) Log() (*logs.Log, error) {
	if c.at.guest == "" {
		return OpenLog(c.at.dir)
	}
	return OpenGuestLog(c.at.dir, c.ended), nil
}

// Phase returns how far the container has come, as last heard, and a channel
// that is closed at the next change.
func (c *Container) Phase() (wire.Phase, <-chan struct{}) {
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

// ended says that Done is closed.
func (c *Container) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

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
	if !c.ended() {
		return result.Exit{}, errors.New("read exit: the container still runs")
	}
	if c.at.guest != "" {
		c.mu.Lock()
		told := c.exit
		c.mu.Unlock()
		if told != nil {
			return *told, nil
		}
		return guestExit(Guest{Name: c.at.guest, Home: c.at.home, Dir: c.at.dir})
	}
	exit, err := result.Read(c.at.dir)
	if err == nil {
		return exit, nil
	}
	if _, _, err := AdoptIn(c.at.dir, c.at.home); err != nil {
		return result.Exit{}, err
	}
	if exit, err = result.Read(c.at.dir); err == nil {
		return exit, nil
	}
	// The shim died before it began anything.
	return result.Exit{}, fmt.Errorf("container %s: %w", filepath.Base(c.at.dir), ErrNeverStarted)
}

// ErrNeverStarted says that a shim died before the user's code could run: the
// container may be started again, in a new directory.
var ErrNeverStarted = errors.New("the shim died before the container began")

// callTimeout bounds how long a shim may take to answer. A kill waits for the
// processes' end first.
var callTimeout = 15 * time.Second

// ErrGone answers a request to a shim that has died.
var ErrGone = errors.New("the container has ended")

func (c *Container) call(ctx context.Context, req wire.Request) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ch := make(chan wire.Reply, 1)
	c.mu.Lock()
	c.seq++
	req.Version, req.Seq = wire.Version, c.seq
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
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", req.Op, ctx.Err())
	}
}

// Begin has the program begin of a container that waits for it.
func (c *Container) Begin(ctx context.Context) error {
	return c.call(ctx, wire.Request{Op: wire.OpBegin})
}

// Signal sends sig to the user's program, whatever shell or init stands before
// it; with SignalFirst to the first process. It is an error while the container starts.
func (c *Container) Signal(sig syscall.Signal) error {
	return c.call(context.Background(), wire.Request{Op: wire.OpSignal, Signal: int(sig)})
}

// Kill ends every process of the container, or keeps it from starting.
func (c *Container) Kill() error {
	err := c.call(context.Background(), wire.Request{Op: wire.OpKill})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Stop sends sig, waits up to grace for the container's end and kills what is
// left. A shim that does not answer is killed first. It returns once the shim has died, or the context ended before.
func (c *Container) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	if grace > 0 && sig != unix.SIGKILL {
		err := c.call(ctx, wire.Request{Op: wire.OpStop, Signal: int(sig)})
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
	err := c.call(ctx, wire.Request{Op: wire.OpKill})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		dir, lock := c.at.dir, fileLock
		if c.at.guest != "" {
			dir, lock = c.at.home, journal.File
		}
		err = shims.Kill(dir, lock)
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
	conn, err := door.Dial(c.at.home)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(annexTimeout))
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, files, err := wire.Ask(conn, wire.Request{Op: wire.OpAnnex, Annex: &q}, channel)
	message.CloseAll(files)
	return err
}

// Exec starts a command in the container. The error wraps a *failure.Failure if the
// container has no such command, directory or user.
func (c *Container) Exec(req wire.ExecRequest, files wire.ExecStdio) (*wire.ExecProcess, error) {
	return wire.Exec(c.at.home, req, files)
}

// annexTimeout bounds how long one may take to begin: what it mounts may be far away.
const annexTimeout = 2 * time.Minute

// Stand makes the container's processes stand still, or go on, if they do not.
func (c *Container) Stand(still bool) error {
	return wire.UnlessSo(c.call(context.Background(), wire.Request{Op: wire.Stand(still)}))
}

// Update changes the limits that are set in l and keeps the others.
func (c *Container) Update(l cgroups.Limits) error {
	return c.call(context.Background(), wire.Request{Op: wire.OpUpdate, Limits: &l})
}

// Stats returns what the container uses. It asks the kernel, not the shim.
func (c *Container) Stats() (cgroups.Stats, error) {
	group, err := groupOf(c.at.home)
	if err != nil {
		return cgroups.Stats{}, err
	}
	return group.Stats()
}
