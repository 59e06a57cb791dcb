package annex

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setGroups sets this thread's groups alone: the function of the standard library sets
// those of all threads.
func setGroups(list []uint32) error {
	var first unsafe.Pointer
	if len(list) > 0 {
		first = unsafe.Pointer(&list[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(list)), uintptr(first), 0); errno != 0 {
		return errno
	}
	return nil
}
