package keeper

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limits are how many kinds of resource limits there are.
const limits = 16

// posture is what programs inherit of this process and a program of the same user may
// change of it without tracing it: limits, priorities, cores. It is read before the
// first and after each, and one that changed something ends the container.
func posture() string {
	var b strings.Builder
	for kind := range limits {
		var l unix.Rlimit
		err := unix.Getrlimit(kind, &l)
		fmt.Fprintln(&b, l, err)
	}
	for _, name := range []string{"oom_score_adj", "coredump_filter"} {
		text, err := os.ReadFile("/proc/self/" + name)
		fmt.Fprintln(&b, string(text), err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	fmt.Fprintln(&b, err)
	var threads []string // one has all of what it has from the one that made it
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		var cores unix.CPUSet
		errCores := unix.SchedGetaffinity(tid, &cores)
		attr, errAttr := unix.SchedGetAttr(tid, 0)
		io, _, errIO := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioProcess, uintptr(tid), 0)
		if errCores == unix.ESRCH || errAttr == unix.ESRCH {
			continue // it has just ended
		}
		threads = append(threads, fmt.Sprint(cores, errCores, attr, errAttr, io, errIO))
	}
	slices.Sort(threads)
	fmt.Fprintln(&b, slices.Compact(threads))
	return b.String()
}

// ioprioProcess asks for one thread's priority on disks.
const ioprioProcess = 1
