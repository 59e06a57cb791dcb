package rank

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/launch"
)

// processes are those that this one has begun. All that end here are taken in at
// one place, since children of tasks whose parents have gone are ours too.
type processes struct {
	mu      sync.Mutex // also held while one is begun: see begin
	running map[int]chan ending
}

// ending is how a process ended, and what it has used with all that it waited for.
type ending struct {
	status syscall.WaitStatus
	use    job.TaskUse
}

// program is what to begin.
type program struct {
	path string
	args []string
	attr syscall.ProcAttr

	cpus   []int // nil: all
	umask  int
	limits []launch.Limit
}

// begin begins a program. The status comes by the channel when it has ended.
// Affinity, umask, limits and what the kernel ends first are this thread's and process's while it is begun,
// from which the child has them.
func (p *processes) begin(g program) (pid int, ended <-chan ending, err error) {
	done := make(chan struct{})
	go func() { // awaited here; its thread goes with it, if the affinity cannot be set back
		defer close(done)
		pid, ended, err = p.beginHere(g)
	}()
	<-done
	return pid, ended, err
}

func (p *processes) beginHere(g program) (int, <-chan ending, error) {
	back, err := pin(g.cpus)
	if err != nil {
		return 0, nil, err
	}
	defer back()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer syscall.Umask(syscall.Umask(g.umask))
	defer limit(g.limits)()
	defer firstToEnd()()
	pid, err := syscall.ForkExec(g.path, g.args, &g.attr)
	if err != nil {
		return 0, nil, err
	}
	status := make(chan ending, 1)
	p.running[pid] = status
	return pid, status, nil
}

// limit sets soft limits, and returns what sets them back.
func limit(list []launch.Limit) (back func()) {
	var before []launch.Limit
	for _, l := range list {
		var now unix.Rlimit
		if unix.Prlimit(0, l.Kind, nil, &now) != nil || now.Cur == l.Soft {
			continue
		}
		if unix.Prlimit(0, l.Kind, &unix.Rlimit{Cur: min(l.Soft, now.Max), Max: now.Max}, nil) == nil {
			before = append(before, launch.Limit{Kind: l.Kind, Soft: now.Cur})
		}
	}
	return func() {
		for _, l := range before {
			var now unix.Rlimit
			if unix.Prlimit(0, l.Kind, nil, &now) == nil {
				_ = unix.Prlimit(0, l.Kind, &unix.Rlimit{Cur: l.Soft, Max: now.Max}, nil)
			}
		}
	}
}

// reap takes in all that have ended.
func (p *processes) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		if ch, ok := p.running[pid]; ok {
			delete(p.running, pid)
			ch <- ending{status, job.TaskUse{UserMS: milliseconds(used.Utime), SystemMS: milliseconds(used.Stime), RSSKiB: used.Maxrss}} // has room
		}
	}
}

func milliseconds(t syscall.Timeval) int64 { return t.Sec*1000 + t.Usec/1000 }

// killSessions kills what still runs in the sessions of tasks: what a task has
// left behind ends with its step.
func killSessions(leaders map[int]bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if sid, err := unix.Getsid(pid); err == nil && leaders[sid] {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// lookPath finds a program as a shell would, in the PATH of its environment. Where a
// path was given it is returned beside the error too.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		at := name
		if name[0] != '/' {
			at = dir + "/" + name
		}
		return at, executable(at)
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var found error = syscall.ENOENT
	for part := range strings.SplitSeq(path, ":") {
		if part == "" || part[0] != '/' {
			part = dir + "/" + part
		}
		at := part + "/" + name
		err := executable(at)
		if err == nil {
			return at, nil
		}
		if err == syscall.EACCES {
			found = err
		}
	}
	return "", found
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return syscall.ENOENT
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return syscall.EACCES
	}
	return nil
}
