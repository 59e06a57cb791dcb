package srun

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/launch"
)

// reachTime is how long the first rank may take to answer.
const reachTime = 20 * time.Second

// reach connects to the job's first rank. In its own container srun begins the
// process there that takes tasks, if none runs yet.
func (r *run) reach() (*launch.Conn, error) {
	for end := time.Now().Add(reachTime); ; time.Sleep(5 * time.Millisecond) {
		c, err := r.info.Dial(0, time.Second)
		if err == nil {
			return c, nil
		}
		if errors.Is(err, unix.ECONNREFUSED) && r.info.Rank == 0 {
			if err := r.beginRank(); err != nil {
				return nil, err
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("reach the job's first rank: %w", err)
		}
	}
}

// beginRank begins the process that takes tasks in this container, with the socket
// that it listens on, which only one srun can have. It is in no session of a
// task, outlives srun, and ends with the container.
func (r *run) beginRank() error {
	l, err := net.Listen("tcp", r.info.ListenAt())
	if errors.Is(err, unix.EADDRINUSE) {
		return nil // another srun was faster
	}
	if err != nil {
		return fmt.Errorf("begin to take tasks: %w", err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(job.LaunchDir+"/"+launch.RankProgram, "beside")
	cmd.Dir, cmd.ExtraFiles, cmd.Env = "/", []*os.File{f}, ofContainer()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keepFiles(); err != nil {
		return fmt.Errorf("begin to take tasks: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("begin to take tasks: %w", err)
	}
	return cmd.Process.Release()
}

// keepFiles has what srun begins not hold what srun was begun with: whoever waits
// for the end of a pipe, as mpirun for that of its srun, would wait for the
// container's end.
func keepFiles() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// ofContainer are the variables that the script began with. What it set since is
// srun's, and tasks have it unless --export says otherwise.
func ofContainer() []string {
	b, err := os.ReadFile("/proc/1/environ")
	if err != nil || len(b) == 0 {
		return os.Environ()
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
