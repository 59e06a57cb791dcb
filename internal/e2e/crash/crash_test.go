package crash

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shell follows a shell with a script in an empty directory, and says which of its
// changing calls it made and what is in the directory after it.
func shell(t *testing.T, at int, refuse func(program, call string) unix.Errno) (calls, files []string, err error) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("NOT TESTED: there is no busybox here: apt-get install busybox-static")
	}
	dir := t.TempDir()
	tracer := &Tracer{Refuse: refuse, Name: func(args []string) string {
		if filepath.Base(args[0]) == "busybox" && len(args) > 1 && args[1] == "sh" {
			return "shell"
		}
		return ""
	}}
	trap := tracer.Set("shell", at)
	cmd := exec.Command(busybox, "sh", "-c", "echo a > one; echo b > two; ("+busybox+" mv two three); echo c > four")
	cmd.Dir = dir
	p, err := tracer.Start(cmd)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EIO) { // also where it is emulated
		t.Skip("NOT TESTED: processes may not be followed here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatal("the shell does not end")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files = append(files, e.Name())
	}
	return trap.Calls(), files, p.Err()
}

// TestDiesAtEachCall: a program that is killed at a call has made all before it and
// not this one. What it starts, and what has no name, is not counted.
func TestDiesAtEachCall(t *testing.T) {
	calls, files, err := shell(t, 0, nil)
	if want := []string{"four", "one", "three"}; err != nil || !slices.Equal(files, want) {
		t.Fatalf("not killed: %v, files %q, want %q", err, files, want)
	}
	made := map[string]bool{}
	for i, call := range calls {
		got, files, err := shell(t, i+1, nil)
		if err == nil || !slices.Equal(got, calls[:i+1]) {
			t.Errorf("killed at call %d: %v, calls %q, want %q", i+1, err, got, calls[:i+1])
		}
		if name, ok := strings.CutPrefix(call, "openat "); ok {
			if slices.Contains(files, name) {
				t.Errorf("killed at %q, which was made", call)
			}
			made[name] = true
		}
		for _, name := range []string{"one", "four"} {
			if made[name] && call != "openat "+name && !slices.Contains(files, name) {
				t.Errorf("killed at call %d, %q: there is no %q", i+1, call, name)
			}
		}
	}
	if !made["one"] || !made["four"] {
		t.Errorf("calls: %q", calls)
	}
}

// TestRefused: a call that is refused is not made, and fails; the others are.
func TestRefused(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("NOT TESTED: calls are refused on amd64 alone")
	}
	calls, files, err := shell(t, 0, func(_, call string) unix.Errno {
		if call == "openat two" {
			return unix.EIO
		}
		return 0
	})
	if want := []string{"four", "one"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%v, files %q, want %q; calls %q", err, files, want, calls)
	}
}

// TestLeavesOthers: who waits for a process of their own learns of its end, whichever thread began it.
func TestLeavesOthers(t *testing.T) {
	var others []*exec.Cmd
	for range 20 {
		cmd := exec.Command("sleep", "0.1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	for range 5 {
		shell(t, 0, nil)
	}
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
