package oci

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// errStopped says that a container was told to stop before it began.
var errStopped = errors.New("stopped before the start")

// start makes the container up to the point where its first process waits for
// the word to execute the user's program.
func (s *shim) start() (*pump, *libcontainer.Process, error) {
	config, err := s.config()
	if err != nil {
		return nil, nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	c, err := libcontainer.Create(cwd+"/"+dirState, s.cfg.ID, config)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.container = c
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return nil, nil, errStopped
	}
	process, err := newProcess(s.spec.Process)
	if err != nil {
		return nil, nil, err
	}
	process.Init = true
	p, err := newPump(s.cfg.Log, process, s.spec.Process.Terminal)
	if err != nil {
		return nil, nil, err
	}
	s.give(p.child, s.spec.Process.User)
	// The mark has to be durable before the user's program runs: without it
	// nothing of the user's can have happened and the rank may be started
	// again. The disk works on it while the container is made.
	marked := make(chan error, 1)
	go func() { marked <- writeBegun(".") }()
	if err = c.Start(process); err == nil {
		if err = errors.Join(<-marked, p.connect()); err != nil {
			err = s.abandon(process, err)
		}
	}
	if err != nil {
		p.finish()
		return nil, nil, err
	}
	s.mu.Lock()
	s.terminal = p.terminal
	s.mu.Unlock()
	return p, process, nil
}

// config turns the spec into libcontainer's.
func (s *shim) config() (*configs.Config, error) {
	spec, linux, root := *s.spec, *s.spec.Linux, *s.spec.Root
	spec.Linux, spec.Root = &linux, &root
	linux.Namespaces = withoutUser(linux.Namespaces)
	root.Path = stageRootfs
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: s.cfg.ID, Spec: &spec})
	if err != nil {
		return nil, err
	}
	config.NoNewKeyring = true // it has this thread's
	// Without its shim nobody keeps a container's lease. The thread that is its parent
	// lives until it has ended. A program may undo this: see lease.Guard.
	config.ParentDeathSignal = int(unix.SIGKILL)
	s.joinUser(config)
	bundleAt(config, stage)
	return config, nil
}

// give makes a pipe the user's of a process, who may open it anew by its name
// in /proc then. Of anything else it is no matter.
func (s *shim) give(f *os.File, u specs.User) {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	if uid, gid, ok := s.ids.Host(u.UID, u.GID); ok {
		_ = f.Chown(uid, gid)
	}
}

// begin lets the user's program run.
func (s *shim) begin(process *libcontainer.Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return s.abandon(process, errStopped)
	}
	pid, err := process.Pid()
	if err != nil {
		return err
	}
	if s.group != nil {
		s.watchOOM()
	}
	if err := s.container.Exec(); err != nil {
		return s.abandon(process, err)
	}
	s.setPhaseLocked(PhaseRunning, pid)
	return nil
}

// abandon ends a container whose program has not begun.
func (s *shim) abandon(process *libcontainer.Process, cause error) error {
	_ = process.Signal(unix.SIGKILL)
	_, _ = process.Wait()
	return cause
}

// watchOOM makes the memory limit end the whole container, as memory.oom.group
// does on v2. A job that has lost one process to it would often hang else.
func (s *shim) watchOOM() {
	if s.v2 {
		return
	}
	events, err := s.container.NotifyOOM()
	if err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("watch the memory limit: %w", err))
		return
	}
	// Ends with the process, or when the cgroup goes and closes the channel.
	go func() {
		for range events {
			s.killAfterOOM()
		}
	}()
}

// killAfterOOM looks at the counter, as the event is a hint that may come
// before the kill or without one.
func (s *shim) killAfterOOM() {
	for range 50 {
		st, err := s.group.Stats()
		if err != nil {
			return
		}
		if st.OOMKills > 0 {
			_ = s.group.Kill(killTimeout)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// fitHost adjusts what only the running kernel knows.
func fitHost(spec *specs.Spec, host cgroups.Host) {
	res := spec.Linux.Resources
	if res != nil && res.Memory != nil {
		if host.Mode == cgroups.V2 {
			res.Unified = map[string]string{"memory.oom.group": "1"}
		} else if !exists(host.Mounts["memory"] + "/memory.memsw.limit_in_bytes") {
			res.Memory.Swap = nil // the kernel does not count swap
		}
	}
	for i := range spec.Process.Rlimits {
		fitRlimit(&spec.Process.Rlimits[i])
	}
}

// fitRlimit lowers a limit that this host does not let us raise to the most
// that it does: a job that asks for unlimited locked memory gets what there is.
func fitRlimit(r *specs.POSIXRlimit) {
	kind, ok := rlimits[r.Type]
	if !ok {
		return // newProcess reports it
	}
	var have unix.Rlimit
	if unix.Getrlimit(kind, &have) != nil || r.Hard <= have.Max {
		return
	}
	if unix.Setrlimit(kind, &unix.Rlimit{Cur: have.Cur, Max: r.Hard}) == nil {
		return
	}
	r.Hard, r.Soft = have.Max, min(r.Soft, have.Max)
}

// newProcess turns the spec's process into libcontainer's. Upstream has the
// same only inside its command.
func newProcess(p *specs.Process) (*libcontainer.Process, error) {
	out := &libcontainer.Process{
		Args: p.Args, Env: p.Env, Cwd: p.Cwd,
		UID: int(p.User.UID), GID: int(p.User.GID),
		NoNewPrivileges: &p.NoNewPrivileges,
		AppArmorProfile: p.ApparmorProfile,
		Label:           p.SelinuxLabel,
	}
	for _, g := range p.User.AdditionalGids {
		out.AdditionalGroups = append(out.AdditionalGroups, int(g))
	}
	if c := p.Capabilities; c != nil {
		out.Capabilities = &configs.Capabilities{
			Bounding: c.Bounding, Effective: c.Effective, Inheritable: c.Inheritable,
			Permitted: c.Permitted, Ambient: c.Ambient,
		}
	}
	for _, r := range p.Rlimits {
		kind, ok := rlimits[r.Type]
		if !ok {
			return nil, fmt.Errorf("unknown resource limit %q", r.Type)
		}
		out.Rlimits = append(out.Rlimits, configs.Rlimit{Type: kind, Hard: r.Hard, Soft: r.Soft})
	}
	return out, nil
}

var rlimits = map[string]int{
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU,
	"RLIMIT_DATA": unix.RLIMIT_DATA, "RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO, "RLIMIT_RTTIME": unix.RLIMIT_RTTIME,
	"RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_STACK": unix.RLIMIT_STACK,
}

// update changes the limits of the running container.
func (s *shim) update(l cgroups.Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	config := s.container.Config()
	if l.MemoryBytes < config.Cgroups.Resources.Memory {
		if err := s.fits(l.MemoryBytes); err != nil {
			return err
		}
	}
	r := *config.Cgroups.Resources
	l.Apply(&r)
	r.Unified = nil // oom.group is set already
	cg := *config.Cgroups
	cg.Resources = &r
	config.Cgroups = &cg
	if err := s.container.Set(config); err != nil {
		return err
	}
	if l.CPUs.IsEmpty() {
		return nil
	}
	return bindTo(l.CPUs)
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
