package rights

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// do calls f on a thread that is taken for somebody else at files, and ends
// afterwards. Linux has these ids by thread: the file system ids and the groups
// decide, for local files as for what is sent to a file server, and without
// capabilities nothing else does, not even a quota that root need not keep.
// The thread's other ids stay root's, so that no process of the user may send
// it a signal or look into it.
func (who id) do(f func() error) (err error) {
	onThread(func() {
		if err = who.take(); err == nil {
			err = f()
		}
	})
	return err
}

// take makes this thread somebody else at files. What fails leaves the thread
// with too few rights and never with too many.
func (who id) take() error {
	if err := dropCapabilities(unix.CAP_SETUID, unix.CAP_SETGID); err != nil {
		return err
	}
	var first *uint32
	if len(who.groups) > 0 {
		first = &who.groups[0]
	}
	// Not unix.Setgroups, which is for all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(who.groups)), uintptr(unsafe.Pointer(first)), 0); errno != 0 {
		return os.NewSyscallError("setgroups", errno)
	}
	// These two tell what was before, and no errors.
	for _, set := range []struct {
		call uintptr
		to   uint32
	}{{unix.SYS_SETFSGID, who.gid}, {unix.SYS_SETFSUID, who.uid}} {
		unix.RawSyscall(set.call, uintptr(set.to), 0, 0)
		if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); uint32(now) != set.to {
			return errors.New("the user's id cannot be taken for files")
		}
	}
	return dropCapabilities()
}

// dropCapabilities leaves this thread with those capabilities in effect.
func dropCapabilities(keep ...uint) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	var kept [2]uint32
	for _, c := range keep {
		kept[c/32] |= 1 << (c % 32)
	}
	for i := range caps {
		caps[i].Effective &= kept[i]
	}
	return os.NewSyscallError("capset", unix.Capset(&header, &caps[0]))
}

// onThread calls f on a thread that ends with it. It is never the process's
// first one, which cannot end and stands for the process in /proc.
func onThread(f func()) {
	done := make(chan struct{})
	go func() { // ends with f, which is waited for
		defer close(done)
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			onThread(f) // while this one stays bound, that gets another
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}
