package keeper

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limits are how many kinds of resource limits there are.
const limits = 16

// posture is what programs inherit of this process, and of the thread that begins them, and a program of
// the same user may change without tracing it: limits, priorities, cores. It is read before the
// first and after each, and one that changed something ends the container.
type posture struct {
	limits [limits]unix.Rlimit
	cores  unix.CPUSet
	attr   unix.SchedAttr
	io     uintptr
	files  [len(postureFiles)][16]byte
	errs   [limits + 3 + len(postureFiles)]syscall.Errno
}

// postureFiles are those of a process that say the rest of it. Each is one number.
var postureFiles = [...]string{"/proc/self/oom_score_adj", "/proc/self/coredump_filter"}

// openPosture opens them; -1: there is none.
func openPosture() (files [len(postureFiles)]int) {
	for i, name := range postureFiles {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			fd = -1
		}
		files[i] = fd
	}
	return files
}

// readPosture is for the thread that begins programs.
func readPosture(files [len(postureFiles)]int) (p posture) {
	note := func(i int, err error) { p.errs[i], _ = err.(syscall.Errno) }
	for kind := range limits {
		note(kind, unix.Getrlimit(kind, &p.limits[kind]))
	}
	note(limits, unix.SchedGetaffinity(0, &p.cores))
	attr, err := unix.SchedGetAttr(0, 0)
	if note(limits+1, err); err == nil {
		p.attr = *attr
	}
	p.io, _, p.errs[limits+2] = unix.Syscall(unix.SYS_IOPRIO_GET, ioprioProcess, 0, 0)
	for i, fd := range files {
		_, err := unix.Pread(fd, p.files[i][:], 0)
		note(limits+3+i, err)
	}
	return p
}

// ioprioProcess asks for one thread's priority on disks.
const ioprioProcess = 1
