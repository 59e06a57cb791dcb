package oci

import (
	"fmt"
	"os"
	"syscall"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runc/libcontainer/utils"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/keeper"
	"gbatch/oci/message"
	"gbatch/oci/ordered"
	"gbatch/oci/spawn"
	"gbatch/oci/stage"
	"gbatch/oci/stdio"
	"gbatch/oci/wire"
)

// own is a container of libcontainer in the shim's process.
type own struct {
	s *shim
	c *libcontainer.Container

	// Nil: libcontainer makes it.
	dev    *stage.Dev
	groups *stage.Groups
}

func newOwn(s *shim) (*own, error) {
	config, err := configOf(s, s.spec, s.now.root.At)
	if err != nil {
		return nil, err
	}
	o := &own{s: s}
	if s.received.User != nil {
		o.dev = stage.TakeDev(config, s.received.IDs, s.now.root.At+".dev")
		o.groups = stage.TakeGroups(config, s.received.IDs, s.now.root.At+".cgroup")
	}
	if o.c, err = libcontainer.Create(seenByAll(stageState), s.now.root.ID, config); err != nil {
		return nil, err
	}
	return o, nil
}

// configOf turns a spec into libcontainer's.
func configOf(s *shim, of *specs.Spec, rootfs string) (*configs.Config, error) {
	spec, linux, root := *of, *of.Linux, *of.Root
	spec.Linux, spec.Root = &linux, &root
	linux.Namespaces = spawn.WithoutUser(linux.Namespaces)
	root.Path = rootfs
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: s.cfg.ID, Spec: &spec})
	if err != nil {
		return nil, err
	}
	config.NoNewKeyring = true // it has this thread's
	// Without its shim nobody keeps a container's lease. The thread that is its parent
	// lives until it has ended. A program may undo this: see lease.Guard.
	config.ParentDeathSignal = int(unix.SIGKILL)
	s.received.JoinUser(config)
	spawn.BundleAt(config, stage.Dir)
	return config, nil
}

// start begins the first process.
func (o *own) start(p *libcontainer.Process) error {
	if err := o.dev.Make(); err != nil {
		return fmt.Errorf("make the container's /dev: %w", err)
	}
	if err := o.groups.Make(); err != nil {
		return fmt.Errorf("show the container its control groups: %w", err)
	}
	return o.c.Start(p)
}

func (o *own) create(p *stdio.Pump) (process, error) {
	process, err := spawn.Of(o.s.spec.Process)
	if err != nil {
		return nil, err
	}
	process.Init = true
	if !p.Terminals() {
		in, out, errs := p.Ends()
		if process.Stdout, process.Stderr = out, errs; in != nil {
			process.Stdin = in
		}
		return process, o.start(process)
	}
	parent, child, err := utils.NewSockPair("console")
	if err != nil {
		return nil, err
	}
	defer child.Close()
	process.ConsoleSocket, process.ConsoleWidth, process.ConsoleHeight = child, stdio.DefaultWidth, stdio.DefaultHeight
	if err := o.start(process); err != nil {
		parent.Close()
		return nil, err
	}
	p.Receive = func() (*os.File, error) {
		defer parent.Close()
		return utils.RecvFile(parent)
	}
	return process, nil
}

// createKeeper makes the container with a keeper as its first process, which is handed
// its own program and the socket by which it is told what to run.
func (o *own) createKeeper(program, arg string, env []string) (process, *ordered.Keeper, error) {
	k, files, err := ordered.Open(program)
	if err != nil {
		return nil, nil, err
	}
	defer message.CloseAll(files)
	p := *o.s.spec.Process
	p.Args, p.Env = []string{fmt.Sprintf("/proc/self/fd/%d", keeper.FdProgram), arg}, env
	process, err := spawn.Of(&p)
	if err == nil {
		process.Init, process.ExtraFiles = true, files // from keeper.FdProgram on
		err = o.start(process)
	}
	if err != nil {
		k.Close()
		return nil, nil, err
	}
	return process, k, nil
}

// led is a container of libcontainer whose program is begun by a keeper. See [ShimConfig.Init].
type led struct{ *own }

func (l led) create(p *stdio.Pump) (process, error) {
	first, k, err := l.createKeeper(l.s.cfg.Init, keeper.ArgInit, l.s.spec.Process.Env)
	if err != nil {
		return nil, err
	}
	in, out, errs := p.Ends()
	one, err := ordered.NewProgram(first, k, in, out, errs)
	if err != nil {
		return nil, l.s.abandon(one, err)
	}
	l.s.keeper = k.Pid
	return one, nil
}

func (o *own) begin() error { return o.c.Exec() }

func (o *own) exec(p *specs.Process, req *wire.ExecRequest, files []*os.File) (process, *os.File, error) {
	process, err := spawn.Of(p)
	if err != nil {
		return nil, nil, err
	}
	var parent *os.File
	if req.Terminal {
		var child *os.File
		if parent, child, err = utils.NewSockPair("console"); err != nil {
			return nil, nil, err
		}
		defer parent.Close()
		defer child.Close()
		process.ConsoleSocket = child
		process.ConsoleWidth, process.ConsoleHeight = req.Width, req.Height
	} else if len(files) >= 3 {
		process.Stdin, process.Stdout, process.Stderr, process.ExtraFiles = files[0], files[1], files[2], files[3:]
	}
	if !o.s.onThread(func() { err = o.run(process) }) {
		return nil, nil, errEnded
	}
	if err != nil || parent == nil {
		return process, nil, err
	}
	master, err := utils.RecvFile(parent)
	if err != nil {
		_ = process.Signal(unix.SIGKILL)
		_, _ = process.Wait()
		return nil, nil, fmt.Errorf("open the command's terminal: %w", err)
	}
	return process, master, nil
}

// run begins a further process. Nothing of one that could not be set up is left.
func (o *own) run(p *libcontainer.Process) error {
	known := spawn.Left()
	err := o.c.Run(p)
	if err != nil {
		spawn.End(known)
	}
	return err
}

func (o *own) signal(sig syscall.Signal) error { return o.s.signalTree(sig) }
func (o *own) hangUp(p process)                { o.s.hangUpSession(p) }
func (o *own) stand(still bool) error          { return o.s.group.Freeze(still) }
func (o *own) oom() (<-chan struct{}, error)   { return o.c.NotifyOOM() }
func (o *own) root() (string, error)           { return o.s.rootOfFirst() }
func (o *own) destroy() error                  { return o.c.Destroy() }

func (o *own) set(l cgroups.Limits) error {
	config := o.c.Config()
	r := *config.Cgroups.Resources
	l.Apply(&r)
	r.Unified = nil // oom.group is set already
	cg := *config.Cgroups
	cg.Resources = &r
	config.Cgroups = &cg
	return o.c.Set(config)
}
