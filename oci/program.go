package oci

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"github.com/opencontainers/runc/libcontainer/exeseal"
	"golang.org/x/sys/unix"
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
	inLargePages(f, len(program))
	// Not by /proc/self, as the child's files are moved around before it executes.
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), nil
})

// inLargePages has a file in memory lie in pages of 2 MiB, where the kernel can (since 6.1): whoever
// executes it takes fewer faults for it, and has less to give back at its end. Where it cannot, nothing
// is lost but that. The kernel does so where the file is mapped at an address that is a multiple, too.
func inLargePages(f *os.File, size int) {
	const large = 2 << 20
	whole := uintptr(size+large-1) &^ (large - 1)
	room, err := unix.MmapPtr(-1, 0, nil, whole+large, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	defer func() { _ = unix.MunmapPtr(room, whole+large) }()
	at := unsafe.Add(room, -uintptr(room)&(large-1))
	if _, err := unix.MmapPtr(int(f.Fd()), 0, at, whole, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err == nil {
		_ = unix.Madvise(unsafe.Slice((*byte)(at), whole), unix.MADV_COLLAPSE)
	}
}

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
