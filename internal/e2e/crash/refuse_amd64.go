package crash

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// leaveOut has the kernel make no call in place of the one that a thread is about to make. It fails where that was killed.
func leaveOut(pid int) {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &r) == nil {
		r.Orig_rax = ^uint64(0)
		_ = unix.PtraceSetRegs(pid, &r)
	}
}

// fails ends a call that was left out, by an error.
func fails(pid int, with syscall.Errno) {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &r) == nil {
		r.Rax = -uint64(with)
		_ = unix.PtraceSetRegs(pid, &r)
	}
}
