package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/handed"
	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// onPool runs a container that waits for a word, and returns its shim's number.
func onPool(t *testing.T, p *oci.Pool) (b *box, shim int, finish func() result.Exit) {
	t.Helper()
	b = newBox(t, "echo here; while [ ! -e /tmp/go ]; do sleep 0.01; done; exit 7")
	b.prepare()
	s, err := p.Start(b.dir, handed.Handover{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill(); <-s.Done() })
	b.shim = s
	poll(t, "running container", func() bool {
		phase, _ := s.Phase()
		if phase == wire.PhaseExited {
			exit, err := result.Read(b.dir)
			t.Fatalf("ended before it was told to: %+v, %v; failure %+v; shim: %s", exit, err, exit.Failure, b.shimLog())
		}
		return phase == wire.PhaseRunning
	})
	return b, shimOf(b), func() result.Exit {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/root/tmp/go", s.PID()), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return b.exit()
	}
}

// One shim serves container after container, and has nothing of those before.
func TestPool(t *testing.T) {
	p := &oci.Pool{Max: 1}
	defer p.Close()
	var first, files int
	var dirs []string
	for i := range 5 {
		b, shim, finish := onPool(t, p)
		if first == 0 {
			first = shim
		}
		if shim != first {
			t.Errorf("container %d has shim %d, want %d", i, shim, first)
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", shim))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			if strings.Contains(string(mounts), dir) {
				t.Errorf("%s is still mounted", dir)
			}
		}
		stage, err := os.ReadDir("/run/gbatch/stage")
		if err != nil || len(stage) > 0 || strings.Contains(string(mounts), "/run/gbatch/stage") {
			t.Errorf("what a container is put together in can be seen from outside: %v, %v", stage, err)
		}
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", shim))
		if i == 1 {
			files = len(open)
		}
		if i == 4 && len(open) >= files+3 { // what a container opens at its start may be there already or not yet
			t.Errorf("%d open files, %d three containers before", len(open), files)
		}
		if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", shim)); cwd != b.dir {
			t.Errorf("the shim is in %s, want %s", cwd, b.dir)
		}
		if e := finish(); e.Code != 7 || e.Lost || e.Stopped || e.CPUNanos == 0 {
			t.Errorf("container %d: %+v", i, e)
		}
		if log := b.log(); log != "here\n" {
			t.Errorf("container %d: log %q", i, log)
		}
		adopt(t, b, oci.StateFinished)
		dirs = append(dirs, b.dir)
		awaitIdle(t, p)
	}
	p.Close()
	if err := unix.Kill(first, 0); err != unix.ESRCH {
		t.Errorf("the shim outlives its pool: %v", err)
	}
}

// awaitIdle waits until the pool has its shim back.
func awaitIdle(t *testing.T, p *oci.Pool) {
	t.Helper()
	poll(t, "idle shim", func() bool { return p.Idle() == 1 })
}

// After anything out of the ordinary the next container gets a new shim.
func TestPoolTakesNoRisk(t *testing.T) {
	for name, disturb := range map[string]func(*box) error{
		"killed":  func(b *box) error { return b.shim.Kill() },
		"visited": func(b *box) error { _, s, err := oci.Adopt(b.dir); return errorOf(s == nil, err) },
		"limits": func(b *box) error {
			return unix.Prlimit(shimOf(b), unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &oci.Pool{Max: 1}
			defer p.Close()
			b, first, finish := onPool(t, p)
			if err := disturb(b); err != nil {
				t.Fatal(err)
			}
			if name == "killed" {
				b.exit()
			} else {
				finish()
			}
			poll(t, "end of the shim", func() bool { return unix.Kill(first, 0) == unix.ESRCH })
			if _, second, finish := onPool(t, p); second == first {
				t.Error("it got the next container too")
			} else if e := finish(); e.Code != 7 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func errorOf(bad bool, err error) error {
	if bad && err == nil {
		return fmt.Errorf("nothing there")
	}
	return err
}

func shimOf(b *box) int { return parentOf(b.shim.PID()) }

func parentOf(pid int) int {
	var ppid int
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "PPid:")
	fmt.Sscan(rest, &ppid)
	return ppid
}

// A shim that dies while it waits costs nobody a container.
func TestPoolDeadWaiter(t *testing.T) {
	p := &oci.Pool{Max: 1}
	defer p.Close()
	_, first, finish := onPool(t, p)
	finish()
	awaitIdle(t, p)
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	poll(t, "end of the shim", func() bool { return unix.Kill(first, 0) == unix.ESRCH })
	_, second, finish := onPool(t, p)
	if e := finish(); e.Code != 7 || second == first {
		t.Errorf("%+v by shim %d", e, second)
	}
}

// A shim that was stopped while it waits ends with its pool, which does not wait
// for somebody to let it go on.
func TestPoolStoppedWaiter(t *testing.T) {
	p := &oci.Pool{Max: 1}
	_, shim, finish := onPool(t, p)
	finish()
	awaitIdle(t, p)
	if err := unix.Kill(shim, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := unix.Kill(shim, 0); err != unix.ESRCH {
		t.Errorf("the shim is there after its pool: %v", err)
	}
}

// A container outlives the pool that began it, and its shim goes with it.
func TestPoolGone(t *testing.T) {
	p := &oci.Pool{Max: 1}
	_, shim, finish := onPool(t, p)
	p.Close()
	if e := finish(); e.Code != 7 {
		t.Errorf("%+v", e)
	}
	poll(t, "end of the shim", func() bool { return unix.Kill(shim, 0) == unix.ESRCH })
}
