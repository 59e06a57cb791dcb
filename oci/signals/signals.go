package signals

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A signal is for the user's program, but that is often not the container's
// first process: a shell may stand before it, which passes nothing on, and a
// first process without a handler does not even get the signal. So it goes
// down from the first process:
//
//   - A process that takes the signal gets it, and what is below it is its own
//     business: an init passes it on, a program stops its workers.
//   - A shell passes nothing on even if it takes the signal, as each does with
//     INT while it waits, and its trap runs only when what it waits for has
//     ended. What it runs in the foreground gets the signal too; what it runs
//     in the background is left to the trap, which may pass it on.
//   - A process that does not take it and waits for children is passed over for
//     them: killed, it would take the container along while they save their work.
//
// INT is what a terminal sends to the whole foreground process group, and
// programs that start others count on that: the group of the first process gets it.

// Tree delivers sig to the container with the first process root, whose
// processes are pids.
func Tree(root int, pids []int, sig syscall.Signal) error {
	if sig == unix.SIGKILL || sig == unix.SIGSTOP || sig == unix.SIGCONT {
		return All(pids, sig)
	}
	return All(aims(root, pids, sig), sig)
}

// aims is who of the processes pids, which descend from root, gets sig.
func aims(root int, pids []int, sig syscall.Signal) []int {
	t := tree{sig: sig, below: map[int][]int{}, group: map[int]int{}}
	for _, pid := range pids {
		parent, err := statField(pid, statParent)
		group, err2 := statField(pid, statGroup)
		if err == nil && err2 == nil {
			t.below[parent] = append(t.below[parent], pid)
			t.group[pid] = group
		}
	}
	t.visit(root, 0)
	switch sig {
	case unix.SIGINT:
		for pid, group := range t.group {
			if group == t.group[root] && !slices.Contains(t.targets, pid) {
				t.targets = append(t.targets, pid)
			}
		}
	case unix.SIGUSR1, unix.SIGUSR2:
		t.spareUnaware()
	default:
		t.spareReaders()
	}
	return t.targets
}

// tree is a container's processes, and which of them are to get a signal.
type tree struct {
	sig     syscall.Signal
	below   map[int][]int
	group   map[int]int
	targets []int
}

// maxTreeDepth ends the descent in a tree that changes while it is read.
const maxTreeDepth = 64

func (t *tree) visit(pid, depth int) {
	below := t.below[pid]
	takes := Takes(pid, t.sig)
	if takes || len(below) == 0 || depth > maxTreeDepth {
		t.targets = append(t.targets, pid)
	}
	if depth > maxTreeDepth || takes && !isShell(pid) {
		return
	}
	slices.Sort(below)
	for _, child := range below {
		if !takes || !inBackground(child) {
			t.visit(child, depth+1)
		}
	}
}

// spareUnaware leaves out who would die of a signal that is to tell somebody
// something, if there is somebody who listens.
func (t *tree) spareUnaware() {
	deaf := func(pid int) bool { return !Takes(pid, t.sig) }
	if !slices.ContainsFunc(t.targets, func(pid int) bool { return !deaf(pid) }) {
		return
	}
	t.targets = slices.DeleteFunc(t.targets, deaf)
}

// spareReaders leaves out who reads what another target writes, as tee behind a
// program: it ends by itself when that has written its last.
func (t *tree) spareReaders() {
	written := map[string]int{}
	for _, pid := range t.targets {
		for _, fd := range []int{1, 2} {
			if name := pipe(pid, fd); name != "" {
				written[name] = pid
			}
		}
	}
	t.targets = slices.DeleteFunc(t.targets, func(pid int) bool {
		writer, ok := written[pipe(pid, 0)]
		return ok && writer != pid && !Takes(pid, t.sig)
	})
}

// All delivers sig to each of the processes that has not ended.
func All(pids []int, sig syscall.Signal) error {
	for _, pid := range pids {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), pid, err)
		}
	}
	return nil
}

// Takes says whether a process has a handler for sig, or holds it back to fetch
// it by itself, as inits do. Shells never fetch one: they hold all signals back
// while they start a program, and would die of this one after that.
func Takes(pid int, sig syscall.Signal) bool {
	return hasSignal(pid, "SigCgt:", sig) || hasSignal(pid, "SigBlk:", sig) && !isShell(pid)
}

// inBackground says whether a shell started the process with &: such a process
// ignores what a terminal would send.
func inBackground(pid int) bool {
	return hasSignal(pid, "SigIgn:", unix.SIGINT) && hasSignal(pid, "SigIgn:", unix.SIGQUIT)
}

// hasSignal says whether sig is in one of the sets that /proc/PID/status shows.
func hasSignal(pid int, set string, sig syscall.Signal) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		if mask, ok := bytes.CutPrefix(line, []byte(set)); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err == nil && sig > 0 && sig <= 64 && n&(1<<(sig-1)) != 0
		}
	}
	return false
}

var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"}

// isShell goes by the program's file: the name of a process is that of its script.
func isShell(pid int) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(proc + "/exe")
	if err != nil {
		return false
	}
	name := filepath.Base(exe)
	if name == "busybox" {
		line, err := os.ReadFile(proc + "/cmdline")
		if err != nil {
			return false
		}
		first, _, _ := strings.Cut(string(line), "\x00")
		name = strings.TrimPrefix(filepath.Base(first), "-")
	}
	return slices.Contains(shells, name)
}

// pipe names the pipe that a process has open as fd; "" if it is none.
func pipe(pid, fd int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil || !strings.HasPrefix(name, "pipe:") {
		return ""
	}
	return name
}

// The numbers of fields of /proc/PID/stat, behind the name.
const (
	statParent  = 1
	statGroup   = 2
	statSession = 3
)

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
