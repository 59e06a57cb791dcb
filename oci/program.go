package oci

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/opencontainers/runc/libcontainer/exeseal"

	"gbatch/oci/pages"
)

// program is the shim as a program of its own, or empty: then shims are the
// program that imports this package, executed again. A daemon that links much
// is slow to execute, twice for each container, so it carries the small one
// inside (build tag "embedshim"), where the two cannot be of different versions.
var program []byte

// programFile is the small program's copy, which must never be closed.
var programFile *os.File

// shimPath is what to execute as a shim. The small program lies sealed in
// memory, one copy for the life of the daemon and of the shims that it began:
// libcontainer sees that no container can write to it and makes no copy itself.
var shimPath = sync.OnceValues(func() (string, error) {
	if len(program) == 0 {
		return "/proc/self/exe", nil // this very program, even after an upgrade of its file
	}
	f, err := exeseal.CloneBinary(bytes.NewReader(program), int64(len(program)), "gbatch-shim", os.TempDir())
	if err != nil {
		return "", fmt.Errorf("make the shim's program: %w", err)
	}
	programFile = f
	pages.Enlarge(f, len(program))
	// Not by /proc/self, as the child's files are moved around before it executes.
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), nil
})

// GuardCommand is for lease.Guard.
func GuardCommand(args ...string) (*exec.Cmd, error) {
	path, err := shimPath()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env = shimVars
	return cmd, nil
}
