package result

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/atomicfile"
)

// guest is what a lock's file says here.
type guest struct{ Name string }

// putLock writes the lock of a program that an earlier version had in another one's container: what it
// said, and room for the record.
func putLock(dir string, g guest) error {
	text, err := json.Marshal(g)
	text = atomicfile.Sum(text)
	return errors.Join(err, os.WriteFile(filepath.Join(dir, fileLock), append(text, blank(2*exitReserve-len(text))...), 0o600))
}

// getLock reads what it said, which ends where the room for the record begins.
func getLock(dir string, g *guest) error {
	path := filepath.Join(dir, fileLock+" as it was")
	all, err := os.ReadFile(filepath.Join(dir, fileLock))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, all[:atomicfile.EndOfPart(all)], 0o600); err != nil {
		return err
	}
	return atomicfile.ReadJSON(path, g)
}

// linkBegun is the mark of its beginning.
func linkBegun(dir string) error {
	return os.Link(filepath.Join(dir, fileLock), filepath.Join(dir, FileBegun))
}

const fileLock = "lock"

// TestRecord: a record is the mark's file under another name, of a program with a mark of its own and of
// one whose mark is its lock, as earlier versions had it, which can still be read.
func TestRecord(t *testing.T) {
	for name, begin := range map[string]func(string) error{"mark": WriteBegun, "lock": linkBegun, "none": func(string) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			said := guest{Name: "a guest whose text is not the first block's length"}
			if err := errors.Join(putLock(dir, said), begin(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("before its end: %v", err)
			}
			if _, err := Settle(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("settled before its end: %v", err)
			}
			if err := Write(dir, Exit{Code: 7, LogBytes: 3}); err != nil {
				t.Fatal(err)
			}
			e, err := Read(dir)
			if err != nil || e.Code != 7 || e.LogBytes != 3 {
				t.Errorf("read: %+v, %v", e, err)
			}
			var got guest
			if err := getLock(dir, &got); err != nil || got != said {
				t.Errorf("the lock says %+v, %v", got, err)
			}
			if _, err := os.Stat(filepath.Join(dir, FileBegun)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the mark is left: %v", err)
			}
		})
	}
}

// TestSettle: of a mark in which a record was being written, all of it is the record, and less of it is none, wherever
// the write broke off. What was before it stays.
func TestSettle(t *testing.T) {
	for name, begin := range map[string]func(string) error{"mark": WriteBegun, "lock": linkBegun} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mark, record := filepath.Join(dir, FileBegun), filepath.Join(dir, FileExit)
			if err := errors.Join(putLock(dir, guest{Name: "g"}), begin(dir)); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(mark)
			if err == nil {
				err = Write(dir, Exit{Code: 7})
			}
			after, rerr := os.ReadFile(record)
			if err := errors.Join(err, rerr, os.Remove(record)); err != nil {
				t.Fatal(err)
			}
			first, last := -1, 0
			for i := range after {
				if i >= len(before) || after[i] != before[i] {
					if last = i + 1; first < 0 {
						first = i
					}
				}
			}
			for n := first; n <= last; n++ {
				torn := append(append([]byte(nil), after[:n]...), before[min(n, len(before)):]...)
				if err := os.WriteFile(mark, torn, 0o600); err != nil {
					t.Fatal(err)
				}
				e, err := Settle(dir)
				if n < last && !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("%d of %d bytes: %+v, %v", n-first, last-first, e, err)
				}
				if n == last && (err != nil || e.Code != 7) {
					t.Fatalf("all of it: %+v, %v", e, err)
				}
			}
			var got guest
			if err := getLock(dir, &got); err != nil || cmp.Diff(guest{Name: "g"}, got) != "" {
				t.Errorf("the lock says %+v, %v", got, err)
			}
		})
	}
}

// TestLost: a shim that died leaves a mark, in which the loss is written.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(putLock(dir, guest{}), linkBegun(dir), os.Truncate(filepath.Join(dir, fileLock), 3*exitReserve/2)); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, Exit{Lost: true}); err != nil {
		t.Fatal(err)
	}
	if e, err := Read(dir); err != nil || !e.Lost || e.Silent() {
		t.Errorf("%+v, %v", e, err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileExit), atomicfile.Sum([]byte(`{"Name":"g"}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := Read(dir); !errors.Is(err, atomicfile.ErrDamaged) {
		t.Errorf("what is no record: %+v, %v", e, err)
	}
}
