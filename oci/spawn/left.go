package spawn

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Left are the children of the calling thread, which the kernel lists by thread. Of a process whose set-up fails
// libcontainer waits for the first one alone; what that has begun is this thread's, too.
func Left() (pids []int) {
	text, _ := os.ReadFile("/proc/thread-self/children") // a kernel without it lists none
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// End ends what is left beside known. While one that has ended in a container is not waited for, the kernel
// keeps the container's first process from ending.
func End(known []int) {
	for _, pid := range Left() {
		if slices.Contains(known, pid) {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL) // it is ours until it is waited for, so nobody else's
		go func() {                      // ends with it; one that stands still ends when it goes on
			for {
				if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
					return
				}
			}
		}()
	}
}
