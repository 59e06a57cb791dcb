package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecondOpener: nobody opens a store that another program has open, also where its lock was removed, or the whole
// directory moved; whoever is killed leaves no lock behind.
func TestSecondOpener(t *testing.T) {
	if dir := os.Getenv("GBATCH_TEST_STORE"); dir != "" { // the other program
		_, _, err := IsMember(Config{Dir: dir})
		if said := errors.Is(err, ErrInUse); err != nil && (!said || strings.Contains(err.Error(), "damaged")) {
			t.Fatal(err)
		}
		s, err := Open(Config{Dir: dir})
		if errors.Is(err, ErrInUse) {
			os.Exit(3)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	opens := func(dir string) int {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		other := exec.Command(self, "-test.run=^TestSecondOpener$")
		other.Env = append(os.Environ(), "GBATCH_TEST_STORE="+dir)
		_ = other.Run() // its exit code says it
		return other.ProcessState.ExitCode()
	}
	if got := opens(dir); got != 3 {
		t.Errorf("a second program ended with %d, want it refused", got)
	}
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	if got := opens(dir); got != 3 {
		t.Errorf("without the lock's file a second program ended with %d, want it refused", got)
	}
	moved := dir + ".moved"
	if err := errors.Join(os.Rename(dir, moved), os.Rename(dir+MarkSuffix, moved+MarkSuffix)); err != nil {
		t.Fatal(err)
	}
	if got := opens(moved); got != 3 {
		t.Errorf("under another name a second program ended with %d, want it refused", got)
	}
	if err := errors.Join(os.Rename(moved, dir), os.Rename(moved+MarkSuffix, dir+MarkSuffix), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := opens(dir); got != 0 {
		t.Errorf("when the first one has closed it, another ended with %d", got)
	}
}
