package keeper

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leaves says whether there are System V objects, which outlive the processes that
// made them. Where that cannot be known, there may be some.
func leaves() bool {
	var info [32]int32 // more than the kernel says of any kind
	at := unsafe.Pointer(&info)
	_, _, err := unix.Syscall(unix.SYS_SHMCTL, 0, shmInfo, uintptr(at))
	some, unknown := info[0] != 0, err != 0 // used_ids of struct shm_info
	_, _, err = unix.Syscall6(unix.SYS_SEMCTL, 0, 0, semInfo, uintptr(at), 0, 0)
	some, unknown = some || info[7] != 0, unknown || err != 0 // semusz of struct seminfo
	_, _, err = unix.Syscall(unix.SYS_MSGCTL, 0, msgInfo, uintptr(at))
	some, unknown = some || info[0] != 0, unknown || err != 0 // msgpool of struct msginfo
	if unknown {                                              // the container's filter refuses it, or the kernel has none
		return listed()
	}
	return some
}

// By these the kernel says how many objects of a kind there are. The files of proc list them,
// and take it fifty times as long.
const (
	msgInfo = 12
	shmInfo = 14
	semInfo = 19
)

// listed is leaves by the files of proc.
func listed() bool {
	for _, kind := range []string{"shm", "sem", "msg"} {
		text, err := os.ReadFile("/proc/sysvipc/" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has none
		}
		if err != nil || bytes.Count(text, []byte{'\n'}) > 1 { // the first line says what the columns are
			return true
		}
	}
	return false
}
