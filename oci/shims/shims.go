// Package shims finds the processes that stand beside containers, from outside of them.
package shims

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Kill ends a shim that answers no more, as one that somebody has stopped: what it would have ended is ended then as that
// of any shim that was killed.
func Kill(dir, lock string) error {
	pids, err := in(dir, lock)
	if err != nil {
		return fmt.Errorf("find the shim that does not answer: %w", err)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill the shim that does not answer: %w", err)
		}
	}
	return nil
}

// in gives the processes that work in a container's directory and have its lock open: its shim alone does both.
func in(dir, lock string) (pids []int, err error) {
	held, err := os.Stat(filepath.Join(dir, lock))
	if err != nil {
		return nil, err
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		if cwd, err := os.Readlink(p + "/cwd"); err != nil || cwd != dir {
			continue
		}
		files, _ := filepath.Glob(p + "/fd/*") // of a process that has just ended there are none
		for _, f := range files {
			st, err := os.Stat(f)
			if pid, bad := strconv.Atoi(filepath.Base(p)); err == nil && bad == nil && os.SameFile(st, held) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, err
}
