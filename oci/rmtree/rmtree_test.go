package rmtree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// deep makes a chain of directories, each with a file, and gives its first.
func deep(t *testing.T, levels int) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := open(unix.AT_FDCWD, top)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		f, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(f)
		if err := unix.Mkdirat(fd, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := open(fd, "d")
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	return top
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// TestDeep: a process that may open 128 files removes 5,000 levels.
func TestDeep(t *testing.T) {
	if path := os.Getenv("RMTREE_TEST_PATH"); path != "" {
		few := unix.Rlimit{Cur: 128, Max: 128}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	top := deep(t, 5000)
	c := exec.Command(os.Args[0], "-test.run=^TestDeep$")
	c.Env = append(os.Environ(), "RMTREE_TEST_PATH="+top)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	gone(t, top)
}

// TestWide: many names in one directory go, however they are read.
func TestWide(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	for i := range 3000 {
		dir := filepath.Join(top, fmt.Sprint(i%1500), fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(top); err != nil {
		t.Fatal(err)
	}
	gone(t, top)
}

// TestLinks: what a link leads to stays, and so does what is beside the tree.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := errors.Join(os.MkdirAll(filepath.Join(other, "sub"), 0o755), os.Mkdir(filepath.Join(dir, "top"), 0o755),
		os.Symlink(other, filepath.Join(dir, "top", "link")), os.Symlink(other, filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "top", "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "top"), filepath.Join(dir, "link"), filepath.Join(dir, "none"), filepath.Join(dir, "none", "none")} {
		if err := Remove(path); err != nil {
			t.Error(err)
		}
		gone(t, path)
	}
	if _, err := os.Stat(filepath.Join(other, "sub")); err != nil {
		t.Error(err)
	}
}

// TestWhatStays: a mount is an error with the tree's path, and the rest is gone.
func TestWhatStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounts need root")
	}
	top := filepath.Join(t.TempDir(), "top")
	at := filepath.Join(top, "a", "mount")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.MkdirAll(filepath.Join(top, "b", "c"), 0o755), unix.Mount("none", at, "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	err := Remove(top)
	if e, ok := errors.AsType[*os.PathError](err); !ok || e.Path != top || !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v", err)
	}
	gone(t, filepath.Join(top, "b"))
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	if err := Remove(top); err != nil {
		t.Error(err)
	}
	gone(t, top)
}
