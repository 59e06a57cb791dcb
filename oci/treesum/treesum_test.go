package treesum

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tree makes one of everything that a layer of an image can hold.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.MkdirAll(at("a/deep/er"), 0o755), os.Mkdir(at("empty"), 0o700),
		os.WriteFile(at("a/large"), bytes.Repeat([]byte("0123456789"), 300_000), 0o644),
		os.WriteFile(at("a/deep/small"), []byte("x"), 0o755), os.WriteFile(at("nothing"), nil, 0o600),
		os.Link(at("a/large"), at("same")), os.Symlink("a/large", at("link")),
		unix.Mkfifo(at("pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func sum(t *testing.T, dir string, how How) string {
	t.Helper()
	s, err := Of(dir, how)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOf: the sum is the same each time, also by the disk, and another one whatever is changed.
func TestOf(t *testing.T) {
	dir := tree(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	whole := sum(t, dir, How{})
	var read int64
	if again := sum(t, dir, How{Disk: true, Pace: func(n int64) error { read += n; return nil }}); again != whole || read < 3_000_000 || read > 4_000_000 {
		t.Errorf("by the disk it is %s after %d bytes, and was %s", again, read, whole)
	}
	old := time.Unix(1_700_000_000, 0)
	rewrite := func(name string, change func([]byte)) error {
		st, err := os.Stat(at(name))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(at(name))
		if err == nil {
			change(b)
			err = errors.Join(os.WriteFile(at(name), b, 0), os.Chtimes(at(name), st.ModTime(), st.ModTime()))
		}
		return err
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"a bit of the last byte", func() error { return rewrite("a/large", func(b []byte) { b[len(b)-1] ^= 1 }) }},
		{"a bit of a small file", func() error { return rewrite("a/deep/small", func(b []byte) { b[0] ^= 64 }) }},
		{"a shorter file", func() error { return os.Truncate(at("a/large"), 2_999_999) }},
		{"a mode", func() error { return os.Chmod(at("nothing"), 0o640) }},
		{"a time", func() error { return os.Chtimes(at("nothing"), old, old) }},
		{"a link", func() error { return errors.Join(os.Remove(at("link")), os.Symlink("a/largf", at("link"))) }},
		{"a name", func() error { return os.Rename(at("empty"), at("emptz")) }},
		{"an attribute", func() error { return unix.Setxattr(at("a"), "user.x", []byte("1"), 0) }},
		{"its value", func() error { return unix.Setxattr(at("a"), "user.x", []byte("0"), 0) }},
		{"a file that is gone", func() error { return os.Remove(at("pipe")) }},
		{"one that has come", func() error { return os.WriteFile(at("a/deep/er/new"), nil, 0o600) }},
	} {
		if err := c.do(); errors.Is(err, unix.ENOTSUP) {
			continue // the file system has no such attributes
		} else if err != nil {
			t.Fatal(err)
		}
		now := sum(t, dir, How{Disk: true})
		if now == whole {
			t.Errorf("%s: nothing is noticed", c.name)
		}
		whole = now
	}
	for _, how := range []How{{}, {Disk: true}} {
		if now := sum(t, dir, how); now != whole {
			t.Errorf("without a change it is %s, and was %s", now, whole)
		}
	}
}

// TestBroken tells damage from what ends the work for another reason.
func TestBroken(t *testing.T) {
	dir := tree(t)
	stop := errors.New("stop")
	if _, err := Of(dir, How{Pace: func(int64) error { return stop }}); !errors.Is(err, stop) || Broken(err) {
		t.Error(err)
	}
	if _, err := Of(filepath.Join(dir, "none"), How{}); !Broken(err) || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
	if !Broken(fmt.Errorf("read: %w", os.NewSyscallError("read", unix.EIO))) || Broken(unix.EMFILE) {
		t.Error("an unreadable block is damage, and too many open files are not")
	}
}
