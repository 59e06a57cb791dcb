package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	upstream "github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/affinity"
	"gbatch/oci/annex"
	"gbatch/oci/atomicfile"
	"gbatch/oci/confine"
	"gbatch/oci/door"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/handed"
	"gbatch/oci/hostnet"
	"gbatch/oci/journal"
	"gbatch/oci/netns"
	"gbatch/oci/result"
	"gbatch/oci/slack"
	"gbatch/oci/spawn"
	"gbatch/oci/stage"
	"gbatch/oci/wire"
)

// What a shim inherits beside stdin, stdout and stderr.
const (
	fdLock    = 3 // held until the process ends; never used
	fdControl = 4 // a connection to whoever called Start; from handed.First on, Handover.files
)

// shim is the state of a shim process: one container, from mount to result.
// Its working directory is the container's directory.
type shim struct {
	spec *specs.Spec
	cfg  ShimConfig

	received handed.Files
	v2       bool // the host has no v1 controllers
	door     *door.Door
	parts    []*part        // the last is the spec's own
	began    time.Time      // the first part; zero: none did
	network  *netns.Service // nil: nothing was handed over
	lock     *os.File       // held until the container is over; never used
	control  *os.File       // to whoever called Start; serve makes starter of it
	starter  *net.UnixConn

	whole  *specs.Spec      // the spec of all programs together, where several run at once
	kept   *kept            // nil: it ends with its program
	book   *journal.Journal // of a container that is kept
	lodger *lodger          // nil: the program has the container's directory
	base   cgroups.Stats    // what the container's earlier programs had used
	used   *cgroups.Stats   // by this one's end, with base; nil: that could not be read

	annexes annex.Set           // begun beside the program
	serving *semaphore.Weighted // one for each command and answer in work; all are taken when no more are served

	// calls are executed by the thread that began the container, until ended.
	calls chan func()

	word   chan struct{} // closed by worded when a container that waits may begin, or shall not
	worded func()

	mu        sync.Mutex // guards what follows, spec from the start of the first part on, and all writes to conns
	now       *part
	several   *several         // nil: one program runs at a time
	ended     chan struct{}    // closed when the part's first process has ended
	limits    []cgroups.Limits // that were set since the first part began
	group     *cgroups.Group
	phase     wire.Phase
	container container      // nil until it is about to be created
	pid       int            // of the program, usually the container's first process; 0 until it runs
	keeper    int            // of a first process that only begins programs; 0: there is none
	first     process        // the same; nil until it has been begun
	terminal  *os.File       // the user's side of its terminal; nil: it has none
	stopped   bool           // asked to stop; keeps a container from starting
	dropped   bool           // it waited when its starter went: nothing is told of it
	ordering  bool           // a keeper begins the program
	late      syscall.Signal // by which it was to stop meanwhile
	leaseOver bool           // its lease ran out
	limitOver bool           // it was ended here because its time was over
	ran       bool           // the container ran and ended
	refused   bool           // a kept container could not begin the program
	left      bool           // the program left something in it that stays
	changed   bool           // its limits were changed
	end       *result.Exit   // how a guest ended, as it is recorded; nil: that is not to be told yet
	free      bool           // with end: another program may run in the container
	visitors  int            // connections beside the starter's, ever
	conns     map[*net.UnixConn]bool
}

func newShimState(lock, control *os.File) *shim {
	word := make(chan struct{})
	return &shim{
		word: word, worded: sync.OnceFunc(func() { close(word) }),
		phase: wire.PhaseStarting, conns: map[*net.UnixConn]bool{}, lock: lock, control: control,
		calls: make(chan func()), ended: make(chan struct{}), now: &part{last: true},
		serving: semaphore.NewWeighted(math.MaxInt64),
	}
}

// shimMain is the whole life of a shim process. It returns the process's exit
// code, which nobody reads: what counts is the file that it leaves.
func shimMain() int {
	unix.CloseOnExec(fdLock)
	unix.CloseOnExec(fdControl)
	// Only the control socket stops a container: a signal to the daemon's
	// process group or session must not. They are caught and dropped, not
	// ignored, as a job would inherit that and could not be interrupted.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	// libcontainer opens the root of all control groups once and for all, and
	// has to do so where it stays: not in a container's mount namespace.
	_, _ = upstream.ReadFile("/sys/fs/cgroup", "cgroup.procs")
	further := openFeed()
	book := journal.Handed()
	for s := newShimState(os.NewFile(fdLock, fileLock), os.NewFile(fdControl, "control")); s != nil; s = further.next(s) {
		s.book = book
		over := make(chan struct{})
		go func() {
			defer close(over)
			s = s.live(further)
		}()
		<-over
	}
	return 0
}

// live takes one container from its mounts to its result, and a kept one to that of its
// last program, whose shim it returns. It has a thread of its own, which ends with it: setup
// gives that its own mount namespace.
func (s *shim) live(further *feed) *shim {
	runtime.LockOSThread()
	if err := slack.Usual(); err != nil { // what it begins is the user's
		fmt.Fprintln(os.Stderr, err)
	}
	// The set-up's garbage is small and short-lived; what runs for weeks is not.
	debug.SetGCPercent(setupGC)
	small := time.AfterFunc(time.Second, func() { debug.SetGCPercent(50) })
	defer small.Stop()
	exit := s.run()
	s.mu.Lock()
	dropped := s.dropped
	s.mu.Unlock()
	if dropped {
		s.teardown()
		return s
	}
	if conclude(s, exit) != nil {
		s.setPhase(wire.PhaseExited, 0)
	}
	last := s
	free := s.kept != nil && s.kept.reusable(s, 1)
	for served := 2; free; served++ {
		next := further.nextGuest(last)
		if next == nil {
			break
		}
		last = next
		exit := conclude(last, last.kept.runNext(last))
		last.kept.over(last)
		free = last.kept.reusable(last, served)
		last.kept.tellEnd(last, exit, free)
	}
	last.teardown()
	return last
}

// conclude records how a program ended. What it returns is nil if that could not be recorded.
func conclude(s *shim, exit result.Exit) *result.Exit {
	exit.Finished = time.Now()
	if !exit.Started.IsZero() { // how long it ran is so whatever became of the wall clock
		exit.Started = exit.Finished.Add(-exit.Finished.Sub(exit.Started))
	}
	if err := record(s, exit); err != nil {
		// Without a result the program counts as lost, which is the truth, when the container has ended.
		fmt.Fprintln(os.Stderr, err)
		s.note(&s.left)
		return nil
	}
	return result.Stamp(exit)
}

// record notes how a program ended.
func record(s *shim, exit result.Exit) error {
	if s.lodger == nil {
		return result.Write(".", exit)
	}
	return s.kept.book.Ended(s.lodger.Name, exit)
}

// setupGC is for the time of a start. It puts the first collection behind what
// one start needs: 16 MiB.
const setupGC = 400

// run starts the container and waits for its end.
func (s *shim) run() result.Exit {
	if err := s.setup(); err != nil {
		return s.failed(err)
	}
	if s.cfg.Keep != nil {
		return runKeeping(s)
	}
	if s.cfg.several() {
		return runSeveral(s)
	}
	return s.runParts()
}

// exitOf is how a part ended by its first process.
func exitOf(s *shim, status syscall.WaitStatus) (exit result.Exit) {
	exit.Code = status.ExitStatus()
	if status.Signaled() {
		exit.Signal = int(status.Signal())
		exit.Code = 128 + exit.Signal
		if status.Signal() == unix.SIGKILL {
			s.sawLeaseOver()
		}
	}
	s.account(&exit)
	return exit
}

// await waits for the container's end, and begins further processes in it
// meanwhile: what this thread is confined to holds for them too.
func (s *shim) await(process process) (status syscall.WaitStatus, err error) {
	ended := s.endOfPart()
	s.mu.Lock()
	s.first = process
	s.mu.Unlock()
	go func() {
		status, err = ending(process)
		close(ended)
	}()
	for {
		select {
		case f := <-s.calls:
			f()
		case <-ended:
			return status, err
		}
	}
}

func (s *shim) endOfPart() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// onThread has f executed by the container's thread. False means that the
// container has ended before.
func (s *shim) onThread(f func()) bool {
	done, ended := make(chan struct{}), s.endOfPart()
	select {
	case s.calls <- func() { defer close(done); f() }:
		<-done
		return true
	case <-ended:
		return false
	}
}

// setup makes everything that the container needs but the container.
func (s *shim) setup() error {
	if err := readSpec(s); err != nil {
		return err
	}
	if err := s.takeParts(); err != nil {
		return err
	}
	if err := s.takeEnv(); err != nil {
		return err
	}
	if err := s.received.Take(s.spec.Linux, s.cfg.handed()); err != nil {
		return err
	}
	if err := s.takeNetwork(); err != nil {
		return err
	}
	if err := s.serve(); err != nil {
		return err
	}
	if err := affinity.OfSpec(s.spec); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// This thread, and what it begins, has a mount namespace of its own from
	// here on: the host's mounts as they are now. What the host mounts and
	// unmounts shows here, nothing from here shows on the host, and all of it
	// goes when the thread does: no crash leaves a mount behind.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("separate mounts from the host: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("separate mounts from the host: %w", err)
	}
	if err := s.mountRoots(); err != nil {
		return err
	}
	if err := s.giveOwn(); err != nil {
		return err
	}
	host, err := cgroups.Detect()
	if err != nil {
		return &failure.Failure{Kind: failure.CgroupFailed, Message: err.Error()}
	}
	group, err := host.Find(s.spec.Linux.CgroupsPath)
	if err != nil {
		return &failure.Failure{Kind: failure.CgroupFailed, Message: err.Error()}
	}
	s.mu.Lock()
	s.group = group
	s.mu.Unlock()
	if s.cfg.FilterHost {
		if err := hostnet.Container(s.spec.Linux.CgroupsPath); err != nil {
			return err
		}
	}
	s.v2 = host.Mode == cgroups.V2
	if s.whole != nil {
		spawn.FitHost(s.whole, host, s.cfg.OOMOne)
	}
	for _, p := range s.parts {
		spawn.FitHost(p.Spec, host, s.cfg.OOMOne)
		s.received.InheritLocked(p.Spec.Process)
		if err := draft.FillSeccomp(p.Spec); err != nil {
			return err
		}
	}
	return errors.Join(confine.Keyring(), confine.Thread(), confineCalls(s))
}

// readSpec reads what the container's directory says of it.
func readSpec(s *shim) error {
	if err := atomicfile.ReadJSON(fileSpec, &s.spec); err != nil {
		return err
	}
	return atomicfile.ReadJSON(fileShim, &s.cfg)
}

// mountRoots makes the root file systems of all parts, so that what is wrong with one of
// them is known before anything runs.
func (s *shim) mountRoots() error {
	scratch := s.cfg.Scratch
	if scratch == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return err
		}
		scratch = cwd
	}
	if err := stage.Make(); err != nil {
		return failure.OfRootfs(err)
	}
	for _, p := range s.parts {
		if err := s.mount(p, scratch); err != nil {
			if f, ok := errors.AsType[*failure.Failure](err); ok {
				return p.named(f)
			}
			return err
		}
	}
	return mountTmp(s)
}

// account reads the figures that disappear with the cgroup.
func (s *shim) account(exit *result.Exit) {
	s.mu.Lock()
	exit.Stopped, exit.LeaseOver, exit.LimitOver = s.stopped, s.leaseOver, s.limitOver
	s.mu.Unlock()
	if s.group == nil {
		return
	}
	st, err := s.group.Totals()
	if err != nil {
		s.used = nil
		if !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	exit.CPUNanos, exit.PeakBytes, exit.OOMKills = st.CPUNanos-s.base.CPUNanos, st.PeakBytes, st.OOMKills-s.base.OOMKills
	exit.PidsDenied = st.PidsDenied - s.base.PidsDenied
	s.used = &st
	exit.OOMKilled = exit.OOMKills > 0 && exit.Code != 0
}

// failed is the result of a container that never ran the user's code.
func (s *shim) failed(err error) result.Exit {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		// Whatever went wrong went wrong because the start was broken off.
		exit := result.Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
		s.account(&exit)
		return exit
	}
	spec := specs.Spec{Process: &specs.Process{Args: []string{""}}}
	if s.spec != nil && s.spec.Process != nil {
		spec = *s.spec
	}
	f := failure.Of(err, failure.Start{Process: spec.Process, Mounts: spec.Mounts, Rootfs: cmp.Or(s.now.root.At, stageRootfs)})
	exit := result.Exit{Code: f.Code(), Failure: s.now.named(f)}
	s.account(&exit)
	exit.OOMKilled = f.Kind == failure.MemoryTooSmall
	return exit
}

// teardown removes what the container had on the host. The directory, with the
// log and the container's own writes, stays until Cleanup.
func (s *shim) teardown() {
	report := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	s.mu.Lock()
	c, group := s.container, s.group
	s.mu.Unlock()
	if s.kept != nil {
		s.kept.end()
	}
	// Nothing lives in the container by now: its processes end with the first
	// one. Only a start that was broken off can leave something to kill.
	if c != nil {
		if err := c.destroy(); err != nil {
			report(group.Kill(killTimeout))
			report(c.destroy())
		}
	}
	if group != nil && group.Exists() {
		report(errors.Join(group.Kill(killTimeout), group.Remove()))
	}
	// So that it is gone when anybody hears of the end; the thread's end would
	// unmount it a moment later.
	parts := s.parts
	if s.kept != nil {
		parts = s.kept.parts
	}
	for _, p := range parts {
		report(errors.Join(p.unpin(), p.root.Unmount()))
	}
	if s.door != nil {
		s.door.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	_ = s.serving.Acquire(ctx, math.MaxInt64) // who has asked hears the answer; by then, that the shim has gone
}

const (
	killTimeout   = 10 * time.Second // in which killed processes leave the kernel
	answerTimeout = 2 * time.Second  // for answers that are due when a container has ended
)
