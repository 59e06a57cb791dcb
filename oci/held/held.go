// Package held is the file by which a container's directory is known to have a shim: it is locked as long
// as one lives. It also has what the shim complained of, or what a guest's shim has to know.
package held

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// File is its name in the directory.
const File = "lock"

// ErrHeld says that somebody holds the lock: a shim lives there.
var ErrHeld = errors.New("a shim is alive")

// Take opens the directory's lock and holds it, or returns ErrHeld.
func Take(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// Passing is how long a lock may stay held when nobody means to hold it: from its fork to its exec a process has a copy of each
// descriptor of its parent, also of a lock that the parent only tried, and processes of a shim that was killed live a moment longer.
const Passing = 2 * time.Second

// TakeWithin is Take that waits for a time until nobody holds the lock.
func TakeWithin(dir string, most time.Duration) (*os.File, error) {
	end := time.Now().Add(most)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		lock, err := Take(dir)
		if !errors.Is(err, ErrHeld) || time.Now().After(end) {
			return lock, err
		}
		time.Sleep(wait)
	}
}

// Await returns when nobody holds the lock, or it cannot be known.
func Await(dir string) {
	if lock, err := TakeWithin(dir, math.MaxInt64); err == nil {
		lock.Close()
	}
}

// Complain opens what a shim complains to. The lock does not belong to who has it open.
func Complain(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, File), os.O_WRONLY|os.O_APPEND, 0)
}

// Complaints returns the end of what a shim wrote before it died.
func Complaints(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data[max(0, len(data)-2048):]))
}
