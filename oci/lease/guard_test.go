package lease

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestEndGuard: the guard is known by the number in the file, also where a longer
// one stood before, and only a guard is ended.
func TestEndGuard(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), guardName) // a process is called as its program
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	guard := exec.Command(program, "1000")
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Process.Kill() })

	for _, text := range []string{"", strconv.Itoa(os.Getpid()), "x\n", strconv.Itoa(os.Getpid()) + "\n"} {
		if err := endGuard(note(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := endGuard(note(t, strconv.Itoa(guard.Process.Pid)+"\n89\n")); err != nil {
		t.Fatal(err)
	}
	var end *exec.ExitError
	if err := guard.Wait(); !errors.As(err, &end) || end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the guard ended by %v, want killed", err)
	}
}

// note is a lock file with a text.
func note(t *testing.T, text string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}
