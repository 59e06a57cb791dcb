package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/door"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/fresh"
	"gbatch/oci/handed"
	"gbatch/oci/journal"
	"gbatch/oci/keeper"
	"gbatch/oci/logs"
	"gbatch/oci/netns"
	"gbatch/oci/ordered"
	"gbatch/oci/result"
	"gbatch/oci/stdio"
	"gbatch/oci/users"
	"gbatch/oci/wire"
)

// Keep makes a container outlive its program, so that others may run in it one after
// the other, each with a log and a result of its own. See [Pool.StartKept] and [Guest].
type Keep struct {
	// Program is what stays in the container as its first process: a static program of
	// the host, which users can execute and not write; see package keeper.
	Program string `json:"program,omitempty"`
}

// kept is a container that outlives its programs. All of it is for the container's thread.
type kept struct {
	own    *own
	first  process          // its keeper
	keeper *ordered.Keeper  // the same
	gone   chan struct{}    // closed when it has ended
	door   *door.Door       // for all of its programs
	book   *journal.Journal // what is durable of its guests
	name   string           // of the guest that runs, in it
	dir    string           // that one's own
	room   string           // for the log of the next that has any output
	later  *time.Timer      // tells that the guest runs; nil: none did yet

	group *cgroups.Group
	v2    bool
	cpus  string // those that it is bound to
	spec  *specs.Spec

	network  *netns.Service
	received handed.Files
	user     users.User   // whom its programs run as, by the image as it was
	parts    []*part      // what is mounted for it
	fresh    []*fresh.Dir // directories that each program finds empty
	dev      *fresh.Fixed // its devices; nil: it has none of its own
}

// maxTasks is how many programs run in one container at most, which bounds whatever may
// gather in it.
const maxTasks = 1000

// tmpDir is where a kept container's /tmp lies on the host.
func tmpDir(scratch, id string) string { return filepath.Join(scratch, id+".tmp") }

// mountTmp gives a kept container a /tmp that can be emptied from outside.
func mountTmp(s *shim) error {
	on, below := fresh.TmpMounted(s.spec.Mounts)
	switch {
	case s.cfg.Keep == nil, on:
		return nil
	case below: // it could not be emptied
		return &failure.Failure{Kind: failure.MountFailed, Message: "a container that is used again has nothing mounted below /tmp"}
	}
	dir := tmpDir(s.cfg.Scratch, s.cfg.ID)
	uid, gid, _ := s.received.IDs.Host(0, 0)
	if err := fresh.MakeTmp(dir, uid, gid); err != nil {
		return err
	}
	s.spec.Mounts = append(s.spec.Mounts, draft.Bind(draft.Mount{Source: dir, Target: fresh.TmpPath}))
	return nil
}

// runKeeping makes a container that outlives its program, and runs that in it.
func runKeeping(s *shim) result.Exit {
	k, err := newKept(s)
	if err != nil {
		return s.failed(err)
	}
	s.kept, s.keeper = k, k.keeper.Pid
	return k.run(s)
}

// newKept makes the container, in which the keeper waits for a program.
func newKept(s *shim) (*kept, error) {
	own, err := newOwn(s)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.container = own
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return nil, errStopped
	}
	k := &kept{own: own, gone: make(chan struct{}), book: s.book, group: s.group.Keep(), v2: s.v2, spec: s.spec, network: s.network, received: s.received, parts: s.parts, door: s.door}
	if k.first, k.keeper, err = own.createKeeper(s.cfg.Keep.Program, keeper.Arg, []string{"GOMAXPROCS=1"}); err != nil {
		return nil, err
	}
	err = k.open(s)
	if err == nil {
		s.mu.Lock()
		if stopped = s.stopped; !stopped {
			s.watchOOM()
		}
		s.mu.Unlock()
		if stopped {
			err = errStopped
		}
	}
	if err == nil {
		err = own.begin()
	}
	if err != nil {
		return nil, s.abandon(k.first, err)
	}
	go func() { // ends with the container
		_, _ = k.first.Wait()
		close(k.gone)
	}()
	s.network.Serve()
	return k, nil
}

// open takes hold of what must be known of a container before anything of its user's runs.
func (k *kept) open(s *shim) (err error) {
	if k.keeper.Pid, err = k.first.Pid(); err != nil {
		return err
	}
	if k.room, err = filepath.Abs(dirRoom); err != nil {
		return err
	}
	u := s.spec.Process.User
	k.user = users.User{UID: u.UID, GID: u.GID, Groups: u.AdditionalGids, Home: draft.EnvValue(s.spec.Process.Env, "HOME")}
	if r := s.spec.Linux.Resources; r != nil && r.CPU != nil {
		k.cpus = r.CPU.Cpus
	}
	root := new(fresh.Owner)
	root.UID, root.GID, _ = s.received.IDs.Host(0, 0)
	k.fresh, k.dev, err = fresh.OpenAll(k.keeper.Pid, s.spec.Mounts, tmpDir(s.cfg.Scratch, s.cfg.ID), root)
	return err
}

// dirRoom is where in the owner's directory a log waits for a program with output.
const dirRoom = "room"

// run takes one program through its time in the container.
func (k *kept) run(s *shim) result.Exit {
	if s.lodger != nil {
		logs.MakeRoom(k.room)
		return k.runLogged(s, stdio.LaterLog(filepath.Join(k.dir, dirLog), k.room, s.cfg.Log))
	}
	log, err := stdio.OpenLog(dirLog, s.cfg.Log)
	if err != nil {
		return s.failed(err)
	}
	return k.runLogged(s, log)
}

func (k *kept) runLogged(s *shim, log *stdio.Log) result.Exit {
	p, err := stdio.NewPump(stdio.Options{Log: log, Files: s.received.Stdio})
	if err != nil {
		return s.failed(err)
	}
	for _, child := range p.Children() {
		s.received.Give(child, s.spec.Process.User)
	}
	pid, err := k.order(s, p)
	if err != nil {
		p.Finish()
		return s.failed(err)
	}
	started, over := time.Now(), make(chan struct{})
	if s.lodger != nil {
		k.runs(s, pid, over)
	} else {
		s.setPhase(wire.PhaseRunning, pid)
		s.keep(over)
	}
	status, err := k.await(s)
	close(over)
	p.Finish()
	exit := exitOf(s, status)
	exit.Started, exit.LogBytes = started, log.Close()
	s.mu.Lock()
	s.ran = err == nil && !p.Hangs
	s.mu.Unlock()
	return exit
}

// order has the keeper begin the program, and says which process that is. Before that it is durable that it may run.
func (k *kept) order(s *shim, p *stdio.Pump) (pid int, err error) {
	if s.lodger != nil {
		err = k.book.Begun(k.name)
	} else {
		err = result.WriteBegun(".")
	}
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return 0, errStopped
	}
	// A stop from here on ends the container, and so what is waited for.
	in, out, errs := p.Ends()
	if pid, err = k.keeper.Begin(s.spec.Process, in, out, errs); err != nil {
		_, s.refused = errors.AsType[*failure.Failure](err)
		return 0, err
	}
	return pid, p.Connect()
}

// await waits for the program's end, and begins further processes meanwhile. An error
// says that the container has ended with it.
func (k *kept) await(s *shim) (status syscall.WaitStatus, err error) {
	go func() { // ends with the program, or the container
		var left bool
		if status, left, err = k.keeper.Await(); err == nil && left {
			s.note(&s.left)
		}
		close(s.ended)
	}()
	for {
		select {
		case f := <-s.calls:
			f()
		case <-s.ended:
			if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
				<-k.gone
			}
			if err != nil {
				status = syscall.WaitStatus(unix.SIGKILL)
			}
			return status, err
		}
	}
}

// reusable makes a container ready for the next program, and says whether it is. After
// anything out of the ordinary it is not.
func (k *kept) reusable(s *shim, served int) bool {
	k.door.Turn(nil) // who comes from now on is nobody's
	s.mu.Lock()
	plain := (s.ran || s.refused) && s.visitors == 0 && !s.stopped && !s.leaseOver && !s.limitOver && !s.left && !s.changed
	s.mu.Unlock()
	if !plain || served >= maxTasks {
		return false
	}
	if s.used == nil || s.used.OOMKills > 0 {
		return false
	}
	pids, err := k.group.Only("pids").Pids()
	if err != nil || len(pids) != 1 || pids[0] != k.keeper.Pid {
		return false
	}
	if k.dev != nil && !k.dev.Same() {
		return false
	}
	for _, dir := range k.fresh {
		if dir.Empty() != nil {
			return false
		}
	}
	return true
}

// runNext takes a guest through its time.
func (k *kept) runNext(s *shim) result.Exit {
	if err := k.setup(s, s.lodger); err != nil {
		return s.failed(err)
	}
	return k.run(s)
}

// setup makes a guest what is to run.
func (k *kept) setup(s *shim, l *lodger) error {
	k.group.ForgetPeak()
	k.name, k.dir = l.Name, l.Dir
	s.cfg, s.spec = l.Config, draft.Further(k.spec, l.Process, l.CPUs)
	if err := s.takeParts(); err != nil {
		return err
	}
	if err := s.takeEnv(); err != nil {
		return err
	}
	if len(s.received.All) != s.cfg.Stdio.Count() {
		return fmt.Errorf("%d files were handed over, not %d", len(s.received.All), s.cfg.Stdio.Count())
	}
	s.received.Stdio, s.received.IDs, s.received.User = s.cfg.Stdio.Of(s.received.All), k.received.IDs, k.received.User
	users.Apply(s.spec, k.user)
	if err := s.serve(); err != nil {
		return err
	}
	if r := s.spec.Linux.Resources; r != nil && r.CPU != nil && r.CPU.Cpus != k.cpus {
		cpus, err := cgroups.ParseCPUSet(r.CPU.Cpus)
		if err != nil {
			return err
		}
		if err := s.update(cgroups.Limits{CPUs: cpus}); err != nil {
			return err
		}
		k.cpus = r.CPU.Cpus
	}
	return nil
}

// end ends the container, and what was opened for it.
func (k *kept) end() {
	k.keeper.Close() // it ends by itself, if it lives
	if err := k.book.Sync(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	select {
	case <-k.gone:
	case <-time.After(killTimeout):
		fmt.Fprintln(os.Stderr, "the keeper does not end")
	}
	k.network.Close()
	k.group.Close()
	for _, dir := range k.fresh {
		dir.Close()
	}
	if k.dev != nil {
		k.dev.Close()
	}
}
