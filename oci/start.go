package oci

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"gbatch/cgroups"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/held"
	"gbatch/oci/message"
	"gbatch/oci/result"
)

func (p *Pool) start(dir string, h handed.Handover) (*Container, error) {
	b, err := newBeginning(dir)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if p.takes(h) && p.assign(dir, append([]*os.File{b.lock, b.theirs}, h.List()...)...) {
		return b.container(nil), nil
	}
	cmd, err := b.command(h.List()...)
	if err != nil {
		return nil, err
	}
	if p.takes(h) {
		if err := p.begin(cmd); err != nil {
			return nil, err
		}
		return b.container(nil), nil
	}
	env, err := h.EnvFile()
	if err != nil {
		return nil, err
	}
	if env != nil {
		defer env.Close()
		cmd.Stdin = env
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return b.container(cmd), nil
}

// beginning is what a shim is handed of a directory, until it has it.
type beginning struct {
	dir    string
	lock   *os.File
	theirs *os.File
	stderr *os.File      // nil: no command was made
	ours   *net.UnixConn // nil once the container has it
}

func newBeginning(dir string) (*beginning, error) {
	if exists(filepath.Join(dir, result.FileExit)) || exists(filepath.Join(dir, result.FileBegun)) {
		return nil, errors.New("the directory was used before; each attempt needs its own")
	}
	// Held by this process and then, through the fork or a message, by the
	// shim. There is no moment in which a shim may live and the lock is free.
	lock, err := held.Take(dir)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := message.Pair()
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &beginning{dir: dir, lock: lock, theirs: theirs, ours: ours}, nil
}

func (b *beginning) close() {
	b.lock.Close()
	b.theirs.Close()
	if b.stderr != nil {
		b.stderr.Close()
	}
	if b.ours != nil {
		b.ours.Close()
	}
}

// container is the hold on what was begun.
func (b *beginning) container(cmd *exec.Cmd) *Container {
	ours := b.ours
	b.ours = nil
	return newContainer(place{dir: b.dir, home: b.dir}, ours, cmd)
}

// command is a shim for the directory, which inherits the files.
func (b *beginning) command(files ...*os.File) (*exec.Cmd, error) {
	path, err := shimPath()
	if err != nil {
		return nil, err
	}
	stderr, err := held.Complain(b.dir)
	if err != nil {
		return nil, err
	}
	b.stderr = stderr
	return &exec.Cmd{
		Path:   path,
		Args:   []string{os.Args[0], "shim", b.dir},
		Dir:    b.dir,
		Env:    slices.Clone(shimVars),
		Stdout: stderr, Stderr: stderr,
		ExtraFiles:  append([]*os.File{b.lock, b.theirs}, files...), // from fdLock on
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}, nil
}

// shimVars is a shim's environment; nothing of the daemon's goes in. GOMAXPROCS
// is inherited by the container's set-up, where it saves a quarter of the time.
var shimVars = []string{shimEnv + "=1", "GOMAXPROCS=1", draft.DefaultPath}

// begin executes a shim that may serve further containers.
func (p *Pool) begin(cmd *exec.Cmd) error {
	feed, err := beginFed(cmd)
	if err != nil {
		return err
	}
	go p.watch(&worker{cmd: cmd, feed: feed, gone: make(chan struct{})}) // ends with the process
	return nil
}

// beginFed executes a shim that hears of what else to do.
func beginFed(cmd *exec.Cmd) (feed *net.UnixConn, err error) {
	feed, theirs, err := message.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", feedEnv, 3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	if err := cmd.Start(); err != nil {
		feed.Close()
		return nil, err
	}
	return feed, nil
}

// groupOf returns the cgroup of the container in dir.
func groupOf(dir string) (*cgroups.Group, error) {
	cfg, err := readShim(dir)
	if err != nil {
		return nil, fmt.Errorf("find the container's cgroup: %w", err)
	}
	return cgroups.Find(cfg.CgroupPath)
}
