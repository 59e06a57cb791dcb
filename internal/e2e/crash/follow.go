package crash

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Process is one that was started to be followed.
type Process struct {
	done   chan struct{}
	status unix.WaitStatus
}

// Done is closed when the process has ended. What it started may go on, and is
// followed on.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil after Done if the process ended with 0.
func (p *Process) Err() error {
	switch {
	case p.status.Signaled():
		return fmt.Errorf("signal: %v", p.status.Signal())
	case p.status.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", p.status.ExitStatus())
	}
	return nil
}

// Start starts a command and follows it. Nobody else may wait for it. It is killed
// when the thread that follows it ends, which it does not before all that it follows.
func (t *Tracer) Start(cmd *exec.Cmd) (*Process, error) {
	p, started := &Process{done: make(chan struct{})}, make(chan error, 1)
	onOwnThread(func() { // ends with the last process that is followed
		f := &follower{t: t, p: p, known: map[int]*thread{}}
		err := f.start(cmd)
		started <- err
		if err == nil {
			f.run()
		}
	})
	return p, <-started
}

// onOwnThread begins do on a thread that has begun no process: one that has would take the ends of others' for ends of its own. The
// kernel takes words about a process from the thread that follows it alone. The thread ends with do.
func onOwnThread(do func()) {
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if children, _ := os.ReadFile("/proc/thread-self/children"); len(children) > 0 {
			onOwnThread(do) // on another one, as this is held until it has one
			runtime.UnlockOSThread()
			close(locked)
			return
		}
		close(locked)
		do()
	}()
	<-locked
}

// follower is the thread that follows a process and what it starts.
type follower struct {
	t     *Tracer
	p     *Process
	root  int
	known map[int]*thread // by number
}

// thread is one of a process that is followed.
type thread struct {
	group   int           // the number of its process
	program string        // empty: a new process that has not executed one yet
	refused syscall.Errno // by which its call ends that was not made; 0: it was
}

// Waits are for the own thread's processes: others of the tests wait for theirs.
const waits = unix.WALL | unix.WNOTHREAD

func (f *follower) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.root = cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(f.root, &status, waits, nil); err != nil {
		return fmt.Errorf("wait for %s to execute: %w", cmd.Path, err)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC
	if err := unix.PtraceSetOptions(f.root, options); err != nil {
		return fmt.Errorf("follow %s: %w", cmd.Path, err)
	}
	f.executed(f.root)
	return nil
}

// run goes on until nothing is followed any more.
func (f *follower) run() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, waits, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return // ECHILD: there is none
		case status.Stopped():
			f.stopped(pid, status)
		case status.Exited() || status.Signaled():
			delete(f.known, pid)
			if pid == f.root {
				f.p.status = status
				close(f.p.done)
			}
		}
	}
}

// stopped looks at what one has stopped for, and lets it go on.
func (f *follower) stopped(pid int, status unix.WaitStatus) {
	th := f.known[pid]
	switch sig := status.StopSignal(); {
	case th == nil: // it is new, and has the stop that all begin with
		f.known[pid] = f.begun(pid)
		f.resume(pid, 0)
	case sig == unix.SIGTRAP|0x80:
		f.call(pid, th)
		f.resume(pid, 0)
	case sig == unix.SIGTRAP && status.TrapCause() == unix.PTRACE_EVENT_EXEC:
		f.executed(pid)
	case sig == unix.SIGTRAP && status.TrapCause() > 0:
		f.resume(pid, 0)
	default:
		f.resume(pid, int(sig))
	}
}

// begun is a thread or process that has not been seen before.
func (f *follower) begun(pid int) *thread {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(after, "\n")
	group, _ := strconv.Atoi(strings.TrimSpace(line))
	if main := f.known[group]; main != nil && group != pid {
		return &thread{group: group, program: main.program}
	}
	return &thread{group: pid}
}

// executed gives a process its program's name, and lets one without a name go.
func (f *follower) executed(pid int) {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program := f.t.Name(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
	if program == "" {
		delete(f.known, pid)
		_ = unix.PtraceDetach(pid)
		return
	}
	f.known[pid] = &thread{group: pid, program: program}
	f.resume(pid, 0)
}

// resume lets one go on: to its next call if it has a name, else to what it executes.
// That fails when it was killed meanwhile, which the next wait says.
func (f *follower) resume(pid, sig int) {
	if th := f.known[pid]; th != nil && th.program != "" {
		_ = unix.PtraceSyscall(pid, sig)
		return
	}
	_ = unix.PtraceCont(pid, sig)
}

// callInfo is the kernel's ptrace_syscall_info, as far as a call has it that begins.
type callInfo struct {
	op   uint8 // 1: the call begins; 2: it ends
	_    [3]uint8
	_    uint32
	_, _ uint64
	nr   uint64
	args [6]uint64
	_    [8]uint8
}

func (f *follower) call(pid int, th *thread) {
	var info callInfo
	const getSyscallInfo = 0x420e
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(pid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno == 0 && info.op == 2 && th.refused != 0 {
		fails(pid, th.refused)
		th.refused = 0
	}
	if errno != 0 || info.op != 1 {
		return
	}
	what := described(pid, info.nr, info.args)
	switch {
	case what == "":
	case f.t.called(th.program, what):
		_ = unix.Kill(th.group, unix.SIGKILL)
	case f.t.Refuse != nil:
		if th.refused = f.t.Refuse(th.program, what); th.refused != 0 {
			leaveOut(pid)
		}
	}
}
