package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/affinity"
	"gbatch/oci/oom"
	"gbatch/oci/ordered"
	"gbatch/oci/result"
	"gbatch/oci/stdio"
	"gbatch/oci/wire"
)

// errStopped says that a container was told to stop before it began.
var errStopped = errors.New("stopped before the start")

// container is what a shim runs: that of libcontainer in this process, or of a
// program of the node's.
type container interface {
	// create makes it up to the point where its first process waits.
	create(*stdio.Pump) (process, error)
	// begin has that execute the user's program.
	begin() error
	// exec begins a further process, and returns the client's end of its terminal
	// if it was to have one.
	exec(*specs.Process, *wire.ExecRequest, []*os.File) (process, *os.File, error)
	// signal is for who in it handles it.
	signal(syscall.Signal) error
	// hangUp ends a process that exec began, with its session.
	hangUp(process)
	// stand makes all processes stand still, or go on.
	stand(still bool) error
	// set changes the limits that are set in l.
	set(l cgroups.Limits) error
	// oom is a channel with a hint whenever the memory limit may have killed. It
	// closes at the latest when the container has been destroyed.
	oom() (<-chan struct{}, error)
	// root is where its files are, for a process of the shim's thread.
	root() (string, error)
	// destroy removes what is left of it. It is an error while anything in it lives.
	destroy() error
}

// process is a first process, or one beside it.
type process interface {
	Pid() (int, error)
	Signal(os.Signal) error
	Wait() (*os.ProcessState, error) // once
}

// ending waits for a first process and says how it ended, or the program that it began.
func ending(p process) (status syscall.WaitStatus, err error) {
	state, err := p.Wait()
	if state == nil {
		return 0, fmt.Errorf("wait for the container: %w", err)
	}
	return ordered.StatusOf(p, state), nil
}

// start makes the container up to the point where its first process waits for
// the word to execute the user's program.
func (s *shim) start(log io.Writer) (*stdio.Pump, process, error) {
	var c container = &foreign{s: s}
	if s.cfg.Runtime == nil {
		own, err := newOwn(s)
		if err != nil {
			return nil, nil, err
		}
		if c = own; s.cfg.Init != "" && s.now.last {
			c = led{own}
		}
	}
	s.mu.Lock()
	s.container = c
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return nil, nil, errStopped
	}
	options := stdio.Options{Log: log, Terminal: s.spec.Process.Terminal}
	if s.now.last {
		options.Files = s.received.Stdio
	}
	p, err := stdio.NewPump(options)
	if err != nil {
		return nil, nil, err
	}
	for _, child := range p.Children() {
		s.received.Give(child, s.spec.Process.User)
	}
	// The mark has to be durable before the user's program runs: without it
	// nothing of the user's can have happened and the rank may be started
	// again. The disk works on it while the container is made.
	marked := make(chan error, 1)
	go func(now bool) {
		if now {
			marked <- result.WriteBegun(".")
		}
		close(marked)
	}(s.began.IsZero() && !s.cfg.Waits)
	process, err := c.create(p)
	if err == nil {
		if err = errors.Join(<-marked, s.limitAnew(c), p.Connect()); err != nil {
			err = s.abandon(process, err)
		}
	}
	if err != nil {
		p.Finish()
		return nil, nil, err
	}
	s.mu.Lock()
	s.terminal = p.Terminal
	s.mu.Unlock()
	return p, process, nil
}

// begin lets the user's program run.
func (s *shim) begin(process process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return s.abandon(process, errStopped)
	}
	if s.group != nil {
		s.watchOOM()
	}
	err := s.container.begin()
	if p, ok := process.(*ordered.Program); ok && err == nil {
		err = s.order(p)
	}
	if err != nil {
		return s.abandon(process, err)
	}
	pid, err := process.Pid()
	s.setPhaseLocked(wire.PhaseRunning, pid)
	return err
}

// order has its keeper begin the program. That may wait for a directory, so the lock is not
// held meanwhile. A stop that came then finds the program: it may run already.
func (s *shim) order(p *ordered.Program) error {
	spec := s.spec.Process
	s.ordering = true
	s.mu.Unlock()
	err := oom.Told(s.group, p.Begin(spec))
	s.mu.Lock()
	s.ordering = false
	if err == nil && s.late != 0 {
		pid, _ := p.Pid()
		err = s.signalFrom(pid, s.late)
	}
	return err
}

// abandon ends a container whose program has not begun.
func (s *shim) abandon(process process, cause error) error {
	_ = process.Signal(unix.SIGKILL)
	_, _ = process.Wait()
	return cause
}

// watchOOM makes the memory limit end the whole container, as memory.oom.group
// does on v2. A job that has lost one process to it would often hang else.
func (s *shim) watchOOM() {
	if s.v2 || s.cfg.OOMOne {
		return
	}
	events, err := s.container.oom() // by begin, which holds the lock
	if err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("watch the memory limit: %w", err))
		return
	}
	// Ends with the process, or when the cgroup goes and closes the channel.
	go func() {
		for range events {
			oom.EndRest(s.group, killTimeout)
		}
	}()
}

// update changes the limits of the running container.
func (s *shim) update(l cgroups.Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.MemoryBytes > 0 {
		if err := s.fits(l.MemoryBytes); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.limits = append(s.limits, l)
	s.mu.Unlock()
	if err := all(s).set(l); err != nil {
		return err
	}
	if l.CPUs.IsEmpty() {
		return nil
	}
	return affinity.To(l.CPUs)
}

// limitAnew gives a part the limits that were changed while others before it ran: its
// spec has those of the beginning.
func (s *shim) limitAnew(c container) error {
	s.mu.Lock()
	limits := s.limits
	s.mu.Unlock()
	for _, l := range limits {
		if err := c.set(l); err != nil {
			return err
		}
	}
	return nil
}

// box is the container that runs, or ran last.
func (s *shim) box() container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.container
}

// all is what is done to all programs of the container that run.
func all(s *shim) interface {
	signal(syscall.Signal) error
	stand(still bool) error
	set(l cgroups.Limits) error
} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.several != nil {
		return s.several
	}
	return s.container
}

// fits refuses a memory limit that would kill what runs: the kernel of v2 does
// so, and that of v1 says no more than that it is busy.
func (s *shim) fits(limit int64) error {
	if limit == 0 {
		return nil
	}
	st, err := s.group.Stats()
	if err != nil {
		return err
	}
	if used := st.HeldBytes; used >= uint64(limit) {
		return fmt.Errorf("the job uses %d MiB of memory that cannot be taken away, more than %d MiB", used>>20, limit>>20)
	}
	return nil
}
