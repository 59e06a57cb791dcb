package logs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onSmallDisk is a directory on a file system of 256 KiB.
func onSmallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("gbatch-test", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("SKIPPED: needs to mount a small file system: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all that is free and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "hog")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	l, err := Open(dir, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var b strings.Builder
	for off := int64(0); ; {
		c, err := l.ReadAt(off)
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(c.Notice())
		b.Write(c.Data)
		off = c.Offset + int64(len(c.Data))
	}
}

// TestLostOnFullDisk: what a full disk does not take leaves a mark with its
// size, once for all that is lost in one go, and what is there already stays.
func TestLostOnFullDisk(t *testing.T) {
	page := strings.Repeat("0123456789abcde\n", 256) // a block: a file's last may have room
	for _, tc := range []struct {
		name string
		log  func(t *testing.T, dir string, w io.Writer)
		want string
	}{
		{"in the middle", func(t *testing.T, dir string, w io.Writer) {
			io.WriteString(w, page)
			free := fill(t, dir)
			for range 40 { // more often than there are segments
				io.WriteString(w, page)
			}
			free()
			io.WriteString(w, "end\n")
		}, page + "\n[gbatch: 163840 bytes were lost here: disk full]\nend\n"},
		{"to the end", func(t *testing.T, dir string, w io.Writer) {
			io.WriteString(w, page)
			fill(t, dir)
			io.WriteString(w, page)
			io.WriteString(w, "x")
		}, page + "\n[gbatch: 4097 bytes were lost here: disk full]\n"},
		{"all of it", func(t *testing.T, dir string, w io.Writer) {
			fill(t, dir)
			io.WriteString(w, page)
		}, "\n[gbatch: 4096 bytes were lost here: disk full]\n"},
		{"a part of a piece", func(t *testing.T, dir string, w io.Writer) {
			io.WriteString(w, page[:4000])
			free := fill(t, dir)
			io.WriteString(w, page[4000:]+page)
			free()
			io.WriteString(w, "end\n")
		}, page + "\n[gbatch: 4096 bytes were lost here: disk full]\nend\n"},
		{"nothing", func(_ *testing.T, _ string, w io.Writer) { io.WriteString(w, "all\n") }, "all\n"},
	} {
		for name, begin := range map[string]func(disk, dir string) (*Writer, error){
			tc.name: func(_, dir string) (*Writer, error) {
				if err := os.Mkdir(dir, 0o700); err != nil {
					return nil, err
				}
				return NewWriter(dir, Limits{})
			},
			tc.name + ", later": func(disk, dir string) (*Writer, error) {
				room := filepath.Join(disk, "room")
				MakeRoom(room)
				MakeRoom(room)
				return NewLater(dir, room, Limits{}), nil
			},
		} {
			t.Run(name, func(t *testing.T) { lose(t, begin, tc.log, tc.want) })
		}
	}
}

// lose checks what becomes of a log that begins so.
func lose(t *testing.T, begin func(disk, dir string) (*Writer, error), log func(t *testing.T, dir string, w io.Writer), want string) {
	t.Helper()
	disk := onSmallDisk(t)
	dir := filepath.Join(disk, "log")
	w, err := begin(disk, dir)
	if err != nil {
		t.Fatal(err)
	}
	log(t, disk, w)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := readAll(t, dir); got != want {
		t.Errorf("log of %d bytes ends in %q, want %d ending in %q", len(got), got[max(0, len(got)-80):], len(want), want[max(0, len(want)-80):])
	}
	if _, err := os.Stat(filepath.Join(dir, fileSpare)); err == nil {
		t.Error("the spare file is left")
	}
}

// TestLater: a log without output has no directory, and is empty to who reads it, before its end
// and after; one whose room is gone begins all the same.
func TestLater(t *testing.T) {
	top := t.TempDir()
	dir, room := filepath.Join(top, "log"), filepath.Join(top, "room")
	w := NewLater(dir, room, Limits{})
	r := OpenLater(dir, func() bool { return false })
	defer r.Close()
	if end, err := r.End(); end != 0 || err != nil {
		t.Errorf("before: ends at %d, %v", end, err)
	}
	if _, err := r.ReadAt(0); !errors.Is(err, io.EOF) {
		t.Errorf("before: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without output: %v", err)
	}
	w = NewLater(dir, room, Limits{})
	io.WriteString(w, "text")
	if c, err := r.ReadAt(0); string(c.Data) != "text" || err != nil {
		t.Errorf("after: %q, %v", c.Data, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostAndSegments: a full disk does not drive out what was written before,
// and a mark goes as a whole into one file.
func TestLostAndSegments(t *testing.T) {
	disk := onSmallDisk(t)
	dir := filepath.Join(disk, "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(dir, Limits{MaxBytes: MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("a", 4080)
	for range 3 {
		io.WriteString(w, line)
	}
	before := readAll(t, dir)
	free := fill(t, disk)
	for range 100 {
		io.WriteString(w, line)
	}
	free()
	io.WriteString(w, "end")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, dir)
	rest, ok := strings.CutPrefix(got, before)
	if !ok || !strings.HasSuffix(rest, "bytes were lost here: disk full]\nend") || strings.Count(got, "[gbatch") != 1 {
		t.Errorf("%d bytes before, now %d that end in %q", len(before), len(got), got[max(0, len(got)-100):])
	}
	if w.Output != 103*4080+3 {
		t.Errorf("counted %d bytes of output", w.Output)
	}
}
