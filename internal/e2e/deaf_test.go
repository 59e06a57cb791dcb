package e2e

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deafEnv names a program that this one becomes.
const deafEnv = "GBATCH_E2E_DEAF"

// beDeaf executes the program that deafEnv names, if it does, which cannot ask the kernel of network interfaces then. Chromium breaks
// off what it is asking for whenever one comes or goes, as with each container of each test on this machine; people
// do not use the page on a node.
func beDeaf() error {
	program := os.Getenv(deafEnv)
	if program == "" {
		return nil
	}
	runtime.LockOSThread()
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(is uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: is, Jf: skip}
	}
	end := func(how uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: how} }
	filter := []unix.SockFilter{ // of struct seccomp_data: the call's number, then at 16 its first argument
		load(0), unless(unix.SYS_SOCKET, 3),
		load(16), unless(unix.AF_NETLINK, 1),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)),
		end(unix.SECCOMP_RET_ALLOW),
	}
	rules := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give %s no new privileges: %w", program, err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&rules)), 0, 0); err != nil {
		return fmt.Errorf("filter the calls of %s: %w", program, err)
	}
	if err := os.Unsetenv(deafEnv); err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, os.Environ())
}
