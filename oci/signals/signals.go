package signals

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A signal is for the user's program, but that is often not the container's
// first process: a shell may stand before it, which passes nothing on, and a
// first process without a handler does not even get the signal. So it goes
// down from the first process: one that handles the signal gets it, and it
// alone, as its children are its own business; one that does not, and waits
// for children, is passed over for them.

// Tree delivers sig to the container with the first process root, whose
// processes are pids.
func Tree(root int, pids []int, sig syscall.Signal) error {
	if sig == unix.SIGKILL || sig == unix.SIGSTOP || sig == unix.SIGCONT {
		return All(pids, sig)
	}
	children := map[int][]int{}
	for _, pid := range pids {
		if parent, err := parentOf(pid); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var targets []int
	var visit func(pid, depth int)
	visit = func(pid, depth int) {
		below := children[pid]
		if Handles(pid, sig) || len(below) == 0 || depth > maxTreeDepth {
			targets = append(targets, pid)
			return
		}
		slices.Sort(below)
		for _, child := range below {
			visit(child, depth+1)
		}
	}
	visit(root, 0)
	return All(targets, sig)
}

// maxTreeDepth ends the descent in a tree that changes while it is read.
const maxTreeDepth = 64

// All delivers sig to each of the processes that has not ended.
func All(pids []int, sig syscall.Signal) error {
	for _, pid := range pids {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), pid, err)
		}
	}
	return nil
}

// Handles says whether a process has a handler for sig.
func Handles(pid int, sig syscall.Signal) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		if mask, ok := bytes.CutPrefix(line, []byte("SigCgt:")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err == nil && sig > 0 && sig <= 64 && n&(1<<(sig-1)) != 0
		}
	}
	return false
}

// The numbers of fields of /proc/PID/stat, behind the name.
const (
	statParent  = 1
	statSession = 3
)

func parentOf(pid int) (int, error) { return statField(pid, statParent) }

// statField is an error for a process that has ended and is not yet reaped.
func statField(pid, n int) (int, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	return fieldOf(data, pid, n)
}

// fieldOf takes a field out of the text of /proc/PID/stat. The program's name is
// in parentheses, is its own choice and may have any character, so cut behind it.
func fieldOf(data []byte, pid, n int) (int, error) {
	i := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[i+1:])
	if i < 0 || len(fields) <= n {
		return 0, fmt.Errorf("read state of process %d: bad line", pid)
	}
	if string(fields[0]) == "Z" {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	return strconv.Atoi(string(fields[n]))
}

// Session is which of the processes belong to the session that leader began.
func Session(leader int, pids []int) []int {
	var members []int
	for _, pid := range pids {
		if id, err := statField(pid, statSession); err == nil && id == leader {
			members = append(members, pid)
		}
	}
	return members
}
