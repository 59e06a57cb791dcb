// Package crash kills programs as they are about to make a system call that changes
// something: each write, rename, mount or new process is a moment at which a program
// can die, and random moments seldom fall between two of them. It follows programs
// and what they start with ptrace, so it needs the right to do that.
package crash

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Tracer follows processes. Its methods may be called from any goroutine.
type Tracer struct {
	// Name is what a program with these arguments is called. Processes without a
	// name are left alone, with all that they start.
	Name func(args []string) string
	// Refuse says with which error a program's call fails, in place of being made; 0: it is made. Nil: all are. Calls are as in
	// [Trap.Calls].
	Refuse func(program, call string) syscall.Errno

	mu   sync.Mutex
	trap *Trap
}

// Trap counts the changing calls of all processes of one program, and may kill the
// process that makes one of them.
type Trap struct {
	t       *Tracer
	program string
	at      int // the call to kill at, from 1 on; 0: none
	calls   []string
	hit     chan struct{}
}

// Set begins to count calls of a program, in the place of the trap before. The
// process that is about to make call number at is killed, and the call not made; 0
// kills none.
func (t *Tracer) Set(program string, at int) *Trap {
	trap := &Trap{t: t, program: program, at: at, hit: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trap = trap
	return trap
}

// Hit is closed when a process was killed.
func (x *Trap) Hit() <-chan struct{} { return x.hit }

// Calls are the calls so far, with what each was about, as "renameat a".
func (x *Trap) Calls() []string {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	return slices.Clone(x.calls)
}

// called counts a call, and says whether its process is to be killed.
func (t *Tracer) called(program, call string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.trap
	if x == nil || x.program != program || x.at > 0 && len(x.calls) >= x.at {
		return false
	}
	x.calls = append(x.calls, call)
	if len(x.calls) != x.at {
		return false
	}
	close(x.hit)
	return true
}

// kind is how to tell what a call changes.
type kind struct {
	name string
	path int // the argument with a path; -1: none
	file int // the argument with an open file; -1: none
}

// changing are the system calls after which something is otherwise than before, for
// another process or for the next one of the same program. What only moves bytes
// inside of a process, waits or reads is not among them.
var changing = map[uint64]kind{
	unix.SYS_OPENAT: {"openat", 1, -1}, unix.SYS_RENAMEAT: {"renameat", 1, -1}, unix.SYS_RENAMEAT2: {"renameat2", 1, -1},
	unix.SYS_UNLINKAT: {"unlinkat", 1, -1}, unix.SYS_MKDIRAT: {"mkdirat", 1, -1}, unix.SYS_MKNODAT: {"mknodat", 1, -1},
	unix.SYS_LINKAT: {"linkat", 1, -1}, unix.SYS_SYMLINKAT: {"symlinkat", 2, -1},
	unix.SYS_FCHMODAT: {"fchmodat", 1, -1}, unix.SYS_FCHOWNAT: {"fchownat", 1, -1},
	unix.SYS_FTRUNCATE: {"ftruncate", -1, 0}, unix.SYS_FALLOCATE: {"fallocate", -1, 0},
	unix.SYS_WRITE: {"write", -1, 0}, unix.SYS_WRITEV: {"writev", -1, 0}, unix.SYS_PWRITE64: {"pwrite64", -1, 0},
	unix.SYS_FSYNC: {"fsync", -1, 0}, unix.SYS_FDATASYNC: {"fdatasync", -1, 0}, unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", -1, 0},
	unix.SYS_SENDMSG: {"sendmsg", -1, 0}, unix.SYS_SENDTO: {"sendto", -1, 0},
	unix.SYS_CONNECT: {"connect", -1, 0}, unix.SYS_BIND: {"bind", -1, 0},
	unix.SYS_MOUNT: {"mount", 1, -1}, unix.SYS_UMOUNT2: {"umount2", 0, -1}, unix.SYS_MOVE_MOUNT: {"move_mount", 3, -1},
	unix.SYS_MOUNT_SETATTR: {"mount_setattr", 1, -1}, unix.SYS_FSMOUNT: {"fsmount", -1, -1},
	unix.SYS_UNSHARE: {"unshare", -1, -1}, unix.SYS_SETNS: {"setns", -1, 0},
	unix.SYS_CLONE: {"clone", -1, -1}, unix.SYS_CLONE3: {"clone3", -1, -1}, unix.SYS_EXECVE: {"execve", 0, -1},
	unix.SYS_KILL: {"kill", -1, -1}, unix.SYS_PIDFD_SEND_SIGNAL: {"pidfd_send_signal", -1, -1},
	unix.SYS_FSETXATTR: {"fsetxattr", -1, 0}, unix.SYS_SETXATTR: {"setxattr", 0, -1}, unix.SYS_LSETXATTR: {"lsetxattr", 0, -1},
}

// described is a call with what it is about, or empty if it changes nothing: it opens
// a file that is there, makes a thread, wakes one, or says something to a log.
func described(pid int, nr uint64, args [6]uint64) string {
	k, ok := changing[nr]
	switch {
	case !ok,
		nr == unix.SYS_OPENAT && args[2]&(unix.O_CREAT|unix.O_TRUNC) == 0,
		nr == unix.SYS_CLONE && args[0]&unix.CLONE_THREAD != 0:
		return ""
	case k.path >= 0:
		return k.name + " " + text(pid, args[k.path])
	case k.file < 0:
		return k.name
	}
	if args[k.file] == 1 || args[k.file] == 2 {
		return ""
	}
	to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, args[k.file]))
	if err != nil || strings.HasPrefix(to, "anon_inode:") {
		return ""
	}
	return k.name + " " + to
}

// text is what a process has at an address, as far as it is a text.
func text(pid int, address uint64) string {
	b := make([]byte, 256)
	b = b[:min(len(b), 4096-int(address%4096))] // no further than the page
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err != nil {
		return "?"
	}
	end := slices.Index(b[:n], 0)
	if end < 0 {
		end = n
	}
	return string(b[:end])
}
