package keeper

import (
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeaves: an object of each kind shows, by the kernel's counts and by its lists.
func TestLeaves(t *testing.T) {
	const private, create = 0, 0o1600
	for name, make := range map[string]func() (uintptr, syscall.Errno){
		"shared memory": func() (id uintptr, err syscall.Errno) {
			id, _, err = unix.Syscall(unix.SYS_SHMGET, private, 4096, create)
			return id, err
		},
		"semaphores": func() (id uintptr, err syscall.Errno) {
			id, _, err = unix.Syscall(unix.SYS_SEMGET, private, 3, create)
			return id, err
		},
		"messages": func() (id uintptr, err syscall.Errno) {
			id, _, err = unix.Syscall(unix.SYS_MSGGET, private, create, 0)
			return id, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // the thread goes with the test, and its objects with it
			if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
				t.Skip("SKIPPED, no IPC namespace of its own here:", err)
			}
			if leaves() || listed() {
				t.Fatalf("without any: %v, %v by the lists", leaves(), listed())
			}
			if _, err := make(); err != 0 {
				t.Fatal(err)
			}
			if !leaves() || !listed() {
				t.Errorf("with one: %v, %v by the lists", leaves(), listed())
			}
		})
	}
}
