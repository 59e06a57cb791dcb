package oci

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	upstream "github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/handed"
	"gbatch/oci/oom"
	"gbatch/oci/runtimes"
	"gbatch/oci/signals"
	"gbatch/oci/stdio"
	"gbatch/oci/wire"
)

// foreign is a container of a program of the node's. The shim's thread executes
// the program each time: what that sees of the host's mounts, and is confined to,
// is what libcontainer has there.
type foreign struct {
	s   *shim
	box runtimes.Container
	// made is set before the program may have made anything.
	made atomic.Bool
	gone chan struct{} // closed when it has been destroyed
}

// create gives the program a bundle in memory: the spec has the job's secrets.
func (f *foreign) create(p *stdio.Pump) (process, error) {
	f.gone = make(chan struct{})
	f.box = runtimes.Container{Runtime: *f.s.cfg.Runtime, ID: f.s.cfg.ID, Dir: stageState}
	if err := os.MkdirAll(f.box.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", f.box.Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700,size=64m"); err != nil {
		return nil, fmt.Errorf("make room for the runtime: %w", err)
	}
	f.made.Store(true)
	var console *runtimes.Console
	if p.Terminals() {
		var err error
		if console, err = f.box.NewConsole(); err != nil {
			return nil, err
		}
		p.Receive = func() (*os.File, error) {
			defer console.Close()
			return console.Terminal(stdio.DefaultWidth, stdio.DefaultHeight)
		}
	}
	in, out, errs := p.Ends()
	pid, err := f.box.Create(f.spec(), runtimes.Stdio{In: in, Out: out, Err: errs, Groups: f.groups()}, console)
	if err != nil {
		return nil, oom.Told(f.s.group, err)
	}
	return runtimes.ProcessOf(pid), nil
}

// spec is the shim's, as the program needs it.
func (f *foreign) spec() *specs.Spec {
	spec, linux, p := *f.s.spec, *f.s.spec.Linux, *f.s.spec.Process
	spec.Linux, spec.Process = &linux, &p
	spec.Root = &specs.Root{Path: stageRootfs, Readonly: f.s.spec.Root.Readonly}
	spec.Annotations = nil
	spec.Version = specVersion
	linux.Namespaces = slices.Clone(linux.Namespaces)
	for i, ns := range linux.Namespaces {
		if ns.Type == specs.UserNamespace && f.s.received.User != nil && !f.box.Kind.Sandboxed() {
			linux.Namespaces[i].Path = handed.PathOf(f.s.received.User)
		}
	}
	if f.box.Kind.Sandboxed() {
		// Its system calls are the sandbox's, which has a filter of its own; the
		// network's settings are made where the network is.
		linux.Seccomp, linux.Sysctl, p.ApparmorProfile = nil, nil, ""
		spec.Mounts = draft.ReadOnlyOnce(spec.Mounts)
	}
	return &spec
}

// specVersion is what all runtimes of these years take: the spec uses nothing of
// later ones that one of them would have to know.
const specVersion = "1.0.2"

// groups are the further groups of the container's user by the host's numbers.
func (f *foreign) groups() (list []uint32) {
	u := f.s.spec.Process.User
	for _, gid := range u.AdditionalGids {
		if _, host, ok := f.s.received.IDs.Host(u.UID, gid); ok {
			list = append(list, uint32(host))
		}
	}
	return list
}

func (f *foreign) begin() error {
	if err := f.box.Start(); err != nil {
		return oom.Told(f.s.group, err)
	}
	return nil
}

func (f *foreign) exec(p *specs.Process, req *wire.ExecRequest, stdio []*os.File) (process, *os.File, error) {
	if req.Program {
		return nil, nil, &failure.Failure{Kind: failure.CommandNotRunable, Message: "containers of this runtime take no programs of the node, only those of their image"}
	}
	process := *p
	process.Terminal = req.Terminal
	var files runtimes.Stdio
	if !req.Terminal && len(stdio) == 3 {
		files = runtimes.Stdio{In: stdio[0], Out: stdio[1], Err: stdio[2]}
	}
	var begun *runtimes.Process
	var master *os.File
	var err error
	do := func() { begun, master, err = f.execInside(&process, files, req) }
	if !f.s.onThread(do) {
		return nil, nil, errEnded
	}
	if err != nil {
		return nil, nil, err
	}
	return onThread{begun, f.s}, master, nil
}

func (f *foreign) execInside(p *specs.Process, files runtimes.Stdio, req *wire.ExecRequest) (begun *runtimes.Process, master *os.File, err error) {
	if !req.Terminal {
		begun, err = f.box.Exec(p, files, nil)
		return begun, nil, err
	}
	console, err := f.box.NewConsole()
	if err != nil {
		return nil, nil, err
	}
	defer console.Close()
	if begun, err = f.box.Exec(p, files, console); err != nil {
		return nil, nil, err
	}
	if master, err = console.Terminal(req.Width, req.Height); err != nil {
		_ = begun.Signal(unix.SIGKILL)
		_, _ = begun.Wait()
	}
	return begun, master, err
}

// onThread is a process whose signals may need the program.
type onThread struct {
	*runtimes.Process
	s *shim
}

func (p onThread) Signal(sig os.Signal) (err error) {
	if !p.s.onThread(func() { err = p.Process.Signal(sig) }) {
		return errEnded
	}
	return err
}

func (f *foreign) do(what func() error) (err error) {
	if !f.s.onThread(func() { err = what() }) {
		return errEnded
	}
	return err
}

func (f *foreign) stand(still bool) error {
	if !f.box.Kind.Sandboxed() {
		return f.s.group.Freeze(still)
	}
	return f.do(func() error { return f.box.Stand(still) })
}

func (f *foreign) signal(sig syscall.Signal) error {
	if !f.box.Kind.Sandboxed() {
		return f.s.signalTree(sig)
	}
	return f.do(func() error { return f.box.Kill(sig) })
}

// hangUp of a process in a sandbox ends that process. What it began goes with it
// where it has a terminal.
func (f *foreign) hangUp(p process) {
	if !f.box.Kind.Sandboxed() {
		f.s.hangUpSession(p)
		return
	}
	_ = p.Signal(unix.SIGHUP)
	time.Sleep(signals.HangUpGrace)
	_ = p.Signal(unix.SIGKILL) // one that has ended takes none
}

// set goes to the group itself, which is the same whoever made it.
func (f *foreign) set(l cgroups.Limits) error {
	r := upstream.Resources{SkipDevices: true}
	l.Apply(&r)
	m, err := manager.New(&upstream.Cgroup{Path: f.s.spec.Linux.CgroupsPath, Resources: &r})
	if err != nil {
		return err
	}
	return m.Set(&r)
}

// oomPeriod is how often the counter is looked at: a program need not tell.
const oomPeriod = time.Second

func (f *foreign) oom() (<-chan struct{}, error) {
	hints := make(chan struct{})
	go func() { // ends when the container has been destroyed
		defer close(hints)
		tick := time.NewTicker(oomPeriod)
		defer tick.Stop()
		for {
			select {
			case <-f.gone:
				return
			case <-tick.C:
			}
			if st, err := f.s.group.Stats(); err != nil || st.OOMKills == 0 {
				continue
			}
			select {
			case hints <- struct{}{}:
			case <-f.gone:
				return
			}
		}
	}()
	return hints, nil
}

// root of a sandbox's first process says nothing of the container's files.
func (f *foreign) root() (string, error) {
	if !f.box.Kind.Sandboxed() {
		return f.s.rootOfFirst()
	}
	_, err := f.s.running()
	return stageRootfs, err
}

// destroy is for the shim's thread, when nothing else is executed there any more.
func (f *foreign) destroy() error {
	if !f.made.Swap(false) {
		return nil
	}
	err := f.box.Delete()
	if f.s.group != nil && f.s.group.Exists() {
		if pids, _ := f.s.group.Pids(); len(pids) > 0 {
			f.made.Store(true)
			return errors.Join(errors.New("something in the container lives"), err)
		}
	}
	close(f.gone)
	return unix.Unmount(f.box.Dir, unix.MNT_DETACH)
}
