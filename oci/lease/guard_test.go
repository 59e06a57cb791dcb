package lease

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestSpares: what needs no lease is left alone, and of what does it is noted that the
// guard ended it.
func TestSpares(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"alone", "leased"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "alone", "spare"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type verdict struct{ Spared, Noted bool }
	got := map[string]verdict{}
	for _, name := range []string{"alone", "leased", "leased", "gone"} {
		spare, group := filepath.Join(dir, "*", "spare"), "/gbatch/n/"+name
		spared := isSpared(spare, group) || noteOver(spare, group)
		_, err := os.Stat(filepath.Join(dir, name, FileOver))
		got[name] = verdict{spared, err == nil}
	}
	if diff := cmp.Diff(map[string]verdict{"alone": {Spared: true}, "leased": {Noted: true}, "gone": {}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if isSpared("", "/gbatch/n/leased") || noteOver("", "/gbatch/n/leased") {
		t.Error("spared without a file that says so")
	}
}
