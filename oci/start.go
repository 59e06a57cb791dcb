package oci

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/draft"
)

func (p *Pool) start(dir string, h Handover) (*Container, error) {
	if exists(filepath.Join(dir, fileExit)) || exists(filepath.Join(dir, fileBegun)) {
		return nil, errors.New("the directory was used before; each attempt needs its own")
	}
	// Held by this process and then, through the fork or a message, by the
	// shim. There is no moment in which a shim may live and the lock is free.
	lock, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	stderr, err := openShimErr(dir)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	path, err := shimPath()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	files := append([]*os.File{lock, theirs}, h.files()...)
	if p.takes(h) && p.assign(dir, files...) {
		return newContainer(dir, ours, nil), nil
	}

	env, err := h.stdin()
	if err != nil {
		ours.Close()
		return nil, err
	}
	cmd := &exec.Cmd{
		Path:   path,
		Args:   []string{os.Args[0], "shim", dir},
		Dir:    dir,
		Env:    slices.Clone(shimVars),
		Stdout: stderr, Stderr: stderr,
		ExtraFiles:  files, // from fdLock on
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if p.takes(h) {
		return p.begin(dir, ours, cmd)
	}
	if env != nil {
		defer env.Close()
		cmd.Stdin = env
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	return newContainer(dir, ours, cmd), nil
}

// shimVars is a shim's environment; nothing of the daemon's goes in. GOMAXPROCS
// is inherited by the container's set-up, where it saves a quarter of the time.
var shimVars = []string{shimEnv + "=1", "GOMAXPROCS=1", draft.DefaultPath}

// begin executes a shim that may serve further containers.
func (p *Pool) begin(dir string, ours *net.UnixConn, cmd *exec.Cmd) (*Container, error) {
	feed, theirs, err := socketPair()
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer theirs.Close()
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", feedEnv, 3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	if err := cmd.Start(); err != nil {
		ours.Close()
		feed.Close()
		return nil, err
	}
	go p.watch(&worker{cmd: cmd, feed: feed, gone: make(chan struct{})}) // ends with the process
	return newContainer(dir, ours, nil), nil
}

// openShimErr opens what a shim complains to: the file of its lock, which does
// not belong to who has it open.
func openShimErr(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, fileLock), os.O_WRONLY|os.O_APPEND, 0)
}

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make control socket: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs := os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make control socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// groupOf returns the cgroup of the container in dir.
func groupOf(dir string) (*cgroups.Group, error) {
	cfg, err := readShim(dir)
	if err != nil {
		return nil, fmt.Errorf("find the container's cgroup: %w", err)
	}
	return cgroups.Find(cfg.CgroupPath)
}

// shimStderr returns the end of what a shim wrote before it died.
func shimStderr(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, fileLock))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data[max(0, len(data)-2048):]))
}
