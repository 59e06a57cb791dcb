package e2e

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noNetlinkEnv names a program that this one becomes.
const noNetlinkEnv = "GBATCH_E2E_NO_NETLINK"

// executeWithoutNetlink executes the program that noNetlinkEnv names, if it does, which cannot ask the kernel of network interfaces then. Chromium breaks
// off what it is asking for whenever one comes or goes, as with each container of each test on this machine; people
// do not use the page on a node.
func executeWithoutNetlink() error {
	program := os.Getenv(noNetlinkEnv)
	if program == "" {
		return nil
	}
	runtime.LockOSThread()
	const number, first = 0, 16 // in struct seccomp_data: the call's number, its first argument
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: first},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	rules := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give %s no new privileges: %w", program, err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&rules)), 0, 0); err != nil {
		return fmt.Errorf("filter the calls of %s: %w", program, err)
	}
	if err := os.Unsetenv(noNetlinkEnv); err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, os.Environ())
}
