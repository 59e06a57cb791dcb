package lease

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// Guard ends containers whose lease is over when neither their owner nor their
// shims do: both may have been killed or stopped. It is a process of its own, which
// needs neither and outlives both; where there is one it knows a group of
// containers by the prefix of their control groups. It ends when its owner has
// gone and there is no container left, and takes the file of the lease along; and when
// another owner takes its place.
type Guard struct {
	Lock   string // file that one guard holds, with its process number
	Lease  string // file with a Lease
	Prefix string // of the containers' control groups
	Spare  string // path of a file, with the last name of a control group for *: where it is, the container needs no lease
	Group  string // control group of its own: who freezes its owner's with all that is in it does not freeze the guard

	// Command executes this program, or one like it, so that it calls Main with what
	// follows Role.
	Command func(args ...string) (*exec.Cmd, error)

	mu     sync.Mutex // guards what follows
	alive  *os.File   // closed by the kernel when we are gone, which the guard sees
	cmd    *exec.Cmd
	closed bool
	wg     sync.WaitGroup // of what waits for the process
}

// Role is the first argument of a guard's process.
const Role = "guard"

// FileOver is in the directory of Guard.Spare where the guard has ended the container:
// its shim, which may stand still meanwhile, sees no more than that it was killed.
const FileOver = "lease-over"

const (
	guardName   = "gbatch-guard"
	guardLock   = 3 // what it inherits: the lock, held until it ends
	guardAlive  = 4 // and the reading end of Guard.alive
	guardLook   = time.Second
	guardPause  = time.Second // before it is begun again
	guardTaking = 5 * time.Second
)

// Open begins the guard, in the place of one that an earlier owner has left.
func (g *Guard) Open() error {
	if err := os.MkdirAll(filepath.Dir(g.Lock), 0o711); err != nil {
		return err
	}
	if err := g.begin(); err != nil {
		return fmt.Errorf("begin the guard of leases: %w", err)
	}
	return nil
}

func (g *Guard) begin() error {
	lock, err := takeGuardLock(g.Lock)
	if err != nil {
		return err
	}
	defer lock.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd, err := g.Command(Role, g.Lease, g.Prefix, g.Spare, g.Group)
	if err != nil {
		ours.Close()
		return err
	}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	// Nothing is ended for want of memory before the jobs are.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid), []byte("-999"), 0)
	if _, err := lock.WriteAt([]byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0); err != nil {
		ours.Close()
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	g.mu.Lock()
	g.alive, g.cmd = ours, cmd
	g.mu.Unlock()
	g.wg.Go(func() { // ends with the process
		_ = cmd.Wait()
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if !closed {
			time.Sleep(guardPause)
			g.again()
		}
	})
	return nil
}

// again begins a guard in the place of one that died.
func (g *Guard) again() {
	g.mu.Lock()
	g.alive.Close()
	closed := g.closed
	g.mu.Unlock()
	if !closed {
		_ = g.begin() // the shims see to their leases too
	}
}

// Close lets the guard end when there is no container left. It waits for that if
// none is there now.
func (g *Guard) Close() {
	g.mu.Lock()
	g.closed = true
	alive := g.alive
	g.mu.Unlock()
	if alive == nil {
		return
	}
	alive.Close()
	if list, err := cgroups.Below(g.Prefix); err == nil && len(list) == 0 {
		g.wg.Wait()
	}
}

// takeGuardLock takes the lock from the guard that holds it, which ends for that.
func takeGuardLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(guardTaking); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err := endGuard(f); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// endGuard ends the guard whose number is in a file, if it is one.
func endGuard(f *os.File) error {
	text := make([]byte, 16)
	n, _ := f.ReadAt(text, 0)
	line, _, whole := strings.Cut(string(text[:n]), "\n") // behind it may be the end of a longer number
	pid, err := strconv.Atoi(line)
	if err != nil || !whole {
		return nil // it is being begun
	}
	p, err := os.FindProcess(pid) // by a handle, so that it is this very one
	if err != nil {
		return nil
	}
	defer p.Release()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || strings.TrimSpace(string(name)) != guardName {
		return nil
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the guard of leases before: %w", err)
	}
	return nil
}

// Main is the whole life of a guard's process. It returns its exit code.
func Main(lease, prefix, spare, group string) int {
	// By this its successor knows it.
	if err := os.WriteFile("/proc/self/comm", []byte(guardName), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	unix.CloseOnExec(guardLock)
	if own, err := cgroups.Find(group); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else if err := own.Enter(os.Getpid()); err != nil {
		fmt.Fprintln(os.Stderr, err) // it does what it can where it is
	} else {
		defer own.Leave(os.Getpid())
	}
	alone := make(chan struct{})
	go func() { // ends with the owner
		defer close(alone)
		_, _ = os.NewFile(guardAlive, "alive").Read(make([]byte, 1))
	}()
	for owned := alone; ; {
		wait := guardLook
		left, err := guardLeft(lease)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			fmt.Fprintln(os.Stderr, err)
		case err == nil && left <= 0:
			if err := cgroups.KillBelow(prefix, func(group string) bool { return isSpared(spare, group) || noteOver(spare, group) }); err != nil {
				fmt.Fprintln(os.Stderr, "end containers whose lease ran out:", err)
			}
		case err == nil:
			wait = min(left, guardLook)
		}
		if owned == nil {
			if list, err := cgroups.Below(prefix); err == nil && len(list) == 0 {
				_ = os.Remove(lease) // it is about nothing; a successor writes its own once it has the lock
				return 0
			}
		}
		select {
		case <-owned:
			owned = nil
		case <-time.After(wait):
		}
	}
}

func isSpared(spare, group string) bool {
	if spare == "" {
		return false
	}
	_, err := os.Stat(beside(spare, group))
	return err == nil // where it cannot be told it is ended: it must not run twice
}

// noteOver notes of a container that it is ended now, and spares none: where that cannot
// be noted it is ended all the same.
func noteOver(spare, group string) bool {
	if spare == "" {
		return false
	}
	path := filepath.Join(filepath.Dir(beside(spare, group)), FileOver)
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
	}
	return false
}

func beside(spare, group string) string { return strings.Replace(spare, "*", path.Base(group), 1) }
