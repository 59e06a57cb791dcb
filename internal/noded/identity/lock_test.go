package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockFollows: what a killed daemon was about to begin holds its lock for a moment, which
// is waited for; another daemon that goes on is not.
func TestLockFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := os.Create(path)
	if err == nil {
		err = unix.Flock(int(held.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := TakeLock(path, "it"); err == nil || !strings.Contains(err.Error(), "another gnoded") {
		t.Fatalf("while it is held: %v", err)
	}
	go held.Close() // ends at once
	l, err := TakeLock(path, "it")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
