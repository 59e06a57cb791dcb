package oci

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	upstream "github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/failure"
	"gbatch/oci/pod"
	"gbatch/oci/result"
	"gbatch/oci/stdio"
	"gbatch/oci/wire"
)

// several is a container in which several programs run at once. Each is a container to the
// runtime, in a group of its own below the container's, which has the limits of all; they
// have the network, the ids and the log in common. The container's thread begins and awaits
// all of them. Without it, as without the shim, none lives.
type several struct {
	*pod.Pod
	s      *shim
	over   chan struct{}
	host   cgroups.Host
	limits upstream.Manager // of the container's group
	mates  map[*pod.Program]*mate
}

// mate is one of its programs.
type mate struct {
	*part
	*pod.Program
	s    *shim // its own state; guarded by the mutex of the whole's. Nil: it has not begun
	out  *stdio.Lines
	exit result.Exit // how it ended last
}

// runSeveral runs the programs of a container in which several run at once.
func runSeveral(s *shim) (exit result.Exit) {
	over := make(chan struct{})
	defer close(over)
	log, err := stdio.OpenLog(dirLog, s.cfg.Log)
	if err != nil {
		return s.failed(err)
	}
	p, programs, err := newSeveral(s, log, over)
	if err != nil {
		exit = s.failed(err)
	} else {
		said, err := p.Run(programs)
		s.network.Close()
		exit = p.total(p.mates[said], err)
	}
	exit.Started = s.began
	exit.LogBytes = log.Close()
	return exit
}

// newSeveral makes the container's group, with the limits of all, and its programs.
func newSeveral(s *shim, log *stdio.Log, over chan struct{}) (*several, []*pod.Program, error) {
	p := &several{Pod: pod.New(), s: s, over: over, mates: map[*pod.Program]*mate{}}
	p.Log, p.Calls, p.FailTogether, p.Served = log, s.calls, s.cfg.FailTogether, s.network.Serve
	p.Signal = syscall.Signal(cmp.Or(s.cfg.Ending.Signal, int(unix.SIGTERM)))
	p.Grace = time.Duration(s.cfg.Ending.GraceMS) * time.Millisecond
	p.Stopped = func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.stopped }
	var err error
	if p.host, err = cgroups.Detect(); err == nil {
		p.limits, err = groupOfAll(s)
	}
	if err != nil {
		return nil, nil, &failure.Failure{Kind: failure.CgroupFailed, Message: "the container's control group cannot be made", Detail: err.Error()}
	}
	var list []*pod.Program
	for _, one := range s.parts {
		list = append(list, p.program(one, log))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.several = p
	return p, list, nil
}

func (p *several) program(one *part, log *stdio.Log) *pod.Program {
	role, label := pod.First, ""
	switch {
	case one.last:
		role = pod.Own
	case one.beside:
		role = pod.Beside
	case one.Stays:
		role = pod.Sidecar
	}
	if role == pod.Beside || role == pod.Sidecar {
		label = "[" + one.Name + "] "
	}
	m := &mate{part: one, out: stdio.NewLines(log, label)}
	m.Program = &pod.Program{
		Name: one.Name, Role: role, Text: m.text,
		Begin: func() error { return p.begin(m) },
		Renew: func() error { return p.noted(m, m.renew()) },
		Drop:  func() { complain(errors.Join(m.unpin(), m.drop())) },
		Stop:  func(sig syscall.Signal) error { return p.stateOf(m).stop(sig) },
	}
	p.mates[m.Program] = m
	return m.Program
}

// begin begins a program and returns when it runs.
func (p *several) begin(m *mate) error {
	c, err := p.state(m)
	if err != nil {
		return err
	}
	if err := p.launch(m, c); err != nil {
		p.clear(c)
		return p.noted(m, err)
	}
	p.tell()
	return nil
}

func (p *several) launch(m *mate, c *shim) error {
	if err := errors.Join(m.find(), m.bundle(c)); err != nil {
		return err
	}
	pump, process, err := c.start(m.out)
	if err != nil {
		return err
	}
	p.SetRuns(m.Program, true) // who hears from the program finds it
	began := time.Now()
	if err := c.begin(process); err != nil {
		p.SetRuns(m.Program, false)
		pump.Finish()
		return err
	}
	if p.s.began.IsZero() {
		p.s.began = began
		p.s.keep(p.over)
	}
	c.mu.Lock()
	c.first = process
	c.mu.Unlock()
	go func() { // ends with the process, when the container's thread has taken its word
		status, err := ending(process)
		close(c.ended)
		pump.Finish()
		p.Ended(m.Program, func() int { return p.ended(m, c, status, err) })
	}()
	return nil
}

// noted keeps of a program that could not begin why.
func (p *several) noted(m *mate, err error) error {
	if err != nil {
		m.exit = result.Exit{Code: 125, Failure: failure.Of(err, failure.Start{Process: m.Spec.Process, Mounts: m.Spec.Mounts, Rootfs: m.root.At})}
	}
	return err
}

// state makes the state of a program that is about to begin.
func (p *several) state(m *mate) (*shim, error) {
	group, err := p.host.Find(m.Spec.Linux.CgroupsPath)
	if err != nil {
		return nil, err
	}
	c := newShimState(nil, nil)
	c.cfg, c.received, c.v2, c.calls, c.began = p.s.cfg, p.s.received, p.s.v2, p.s.calls, p.s.began
	c.now, c.spec, c.parts, c.group = m.part, m.Spec, []*part{m.part}, group
	p.s.mu.Lock()
	m.s = c
	p.s.mu.Unlock()
	if !p.Enter(m.Program) {
		return nil, errStopped
	}
	return c, nil
}

func (p *several) stateOf(m *mate) *shim {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return m.s
}

// ended takes in that a program has ended, and leaves nothing of it but what it wrote.
func (p *several) ended(m *mate, c *shim, status syscall.WaitStatus, err error) int {
	p.SetRuns(m.Program, false)
	c.annexes.End(complain)
	if err == nil {
		m.exit = exitOf(c, status)
	} else {
		m.exit = c.failed(err)
	}
	if m.exit.LeaseOver {
		p.s.note(&p.s.leaseOver)
	}
	p.clear(c)
	p.tell()
	complain(m.out.End())
	return m.exit.Code
}

// clear removes a program's container.
func (p *several) clear(c *shim) {
	box := c.box()
	c.setPhase(wire.PhaseExited, 0)
	if box == nil {
		return
	}
	if box.destroy() != nil {
		complain(errors.Join(c.group.Kill(killTimeout), box.destroy()))
	}
}

// text says how a program ended last.
func (m *mate) text() string {
	switch {
	case m.exit.Failure != nil:
		return "could not begin: " + m.exit.Failure.Message
	case m.exit.OOMKilled:
		return "was out of memory"
	}
	return fmt.Sprintf("ended with code %d", m.exit.Code)
}

// total is the container's end: that of one of its programs, with what all have used. What
// the kernel counts for each group alone is added up.
func (p *several) total(m *mate, err error) result.Exit {
	exit := result.Exit{Code: m.exit.Code, Signal: m.exit.Signal, Failure: m.exit.Failure}
	oom := m.exit.OOMKilled
	if err != nil {
		p.s.mu.Lock()
		p.s.now, p.s.spec = m.part, m.Spec
		p.s.mu.Unlock()
		exit = p.s.failed(err)
		oom = exit.OOMKilled
	}
	p.s.account(&exit)
	if exit.OOMKilled, exit.Beside = oom, m.beside; !m.last {
		exit.Part = m.part.Name
	}
	var kills, denied uint64
	for _, one := range p.mates {
		kills, denied = kills+one.exit.OOMKills, denied+one.exit.PidsDenied
	}
	exit.OOMKills, exit.PidsDenied = max(exit.OOMKills, kills), max(exit.PidsDenied, denied)
	return exit
}

// front is what the container is about: its own program, or the one that runs before it.
func (p *several) front() (front *mate, running []*mate) {
	for _, one := range p.Running() {
		m := p.mates[one]
		if running = append(running, m); one.Role == pod.First || one.Role == pod.Own {
			front = m
		}
	}
	return front, running
}

// tell says to clients what the container is about. They find its network by a process of it:
// where that has ended which it is about, by another.
func (p *several) tell() {
	front, running := p.front()
	pid := 0
	for _, m := range append([]*mate{front}, running...) {
		if m != nil && pid == 0 {
			pid, _ = p.stateOf(m).running() // an error: 0
		}
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if front != nil {
		p.s.now = front.part
	} else if p.s.phase != wire.PhaseRunning {
		return // only sidecars began
	}
	if p.s.phase != wire.PhaseRunning || p.s.pid != pid {
		p.s.setPhaseLocked(wire.PhaseRunning, pid)
	}
}

// stop ends the programs.
func (p *several) stop(sig syscall.Signal) error {
	errs := p.Stop(sig)
	if sig == unix.SIGKILL {
		errs = append(errs, p.s.group.Kill(killTimeout))
	}
	return errors.Join(errs...)
}

// signal is for the container's own program, or that which runs before it.
func (p *several) signal(sig syscall.Signal) error {
	c, err := p.named("")
	if err != nil {
		return err
	}
	return c.signal(sig)
}

// named is the state of the program of that name; "": what the container is about.
func (p *several) named(name string) (*shim, error) {
	front, running := p.front()
	if name == "" && front != nil {
		return p.stateOf(front), nil
	}
	var names []string
	for _, m := range running {
		if m.last {
			continue
		}
		if m.part.Name == name {
			return p.stateOf(m), nil
		}
		names = append(names, m.part.Name)
	}
	switch list := strings.Join(names, ", "); {
	case name == "" && list != "":
		return nil, errors.New("the job's own program does not run; these do: " + list)
	case name == "":
		return nil, errNotRunning
	case list == "":
		return nil, fmt.Errorf("no container %q runs in the job, nor any but its own", name)
	default:
		return nil, fmt.Errorf("no container %q runs in the job; these do: %s", name, list)
	}
}

func (p *several) stand(still bool) error {
	p.Pause(still)
	err := p.s.group.Freeze(still)
	if err != nil && still {
		p.Pause(false)
	}
	return err
}
