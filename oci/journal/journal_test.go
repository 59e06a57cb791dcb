package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/atomicfile"
	"gbatch/oci/held"
	"gbatch/oci/result"
)

// made is a journal with a guest that ended, one that has begun, and one that has not.
func made(t *testing.T) (dir string, text []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "box")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	j := Of(f)
	defer j.Close()
	if err := errors.Join(
		j.Record("a", map[string]int{"n": 1}), j.Begun("a"), j.Ended("a", result.Exit{Code: 7, LogBytes: 3}), j.Over("a"),
		j.Record("b", "one\ntwo"), j.Record("b", "three"), j.Begun("b"),
		j.Record("c", nil),
	); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join(dir, File)); err != nil {
		t.Fatal(err)
	}
	return dir, text
}

// of says in short what is known of guests.
func of(list []*Guest) map[string]string {
	out := map[string]string{}
	for _, g := range list {
		s := string(g.Record)
		if !g.Begun.IsZero() {
			s += " begun"
		}
		if g.Exit != nil {
			s += " ended"
		}
		if g.Over {
			s += " over"
		}
		out[g.Name] = s
	}
	return out
}

// TestJournal: what was written of each guest is read, by whoever opens the journal, and its lock says
// whether the one who made it lives.
func TestJournal(t *testing.T) {
	dir, _ := made(t)
	list, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": `{"n":1} begun ended over`, "b": `"three" begun`, "c": "null"}
	if diff := cmp.Diff(want, of(list)); diff != "" {
		t.Errorf("guests (-want +got):\n%s", diff)
	}
	if g, err := Find(dir, "a"); err != nil || g.Exit.Code != 7 || g.Exit.LogBytes != 3 || g.Exit.WallMS == 0 {
		t.Errorf("a: %+v, %v", g, err)
	}
	if _, err := Find(dir, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("d: %v", err)
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a journal: %v", err)
	}
	lock, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir); !errors.Is(err, held.ErrHeld) {
		t.Errorf("taken twice: %v", err)
	}
	lock.Close()
	Await(dir, "c")
	if err := Shorten(dir, func(r json.RawMessage) any { return len(r) }); err != nil {
		t.Fatal(err)
	}
	want["a"] = "7 begun ended over"
	if list, err = Read(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, of(list)); diff != "" {
		t.Errorf("shortened (-want +got):\n%s", diff)
	}
}

// TestAgain: a guest that was not begun and is let go of may be asked for again in the same container, as when the
// daemon died before it began. It is not over then.
func TestAgain(t *testing.T) {
	dir, _ := made(t)
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := errors.Join(j.Over("c"), j.Record("c", "again"), j.Begun("c")); err != nil {
		t.Fatal(err)
	}
	if g, err := Find(dir, "c"); err != nil || g.Over || g.Begun.IsZero() {
		t.Errorf("asked for again: %+v, %v", g, err)
	}
	if err := errors.Join(j.Ended("c", result.Exit{}), j.Over("c")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if g, err := Find(dir, "c"); err != nil || !g.Over || g.Exit == nil {
			t.Errorf("let go of again: %+v, %v", g, err)
		}
		if err := Shorten(dir, func(json.RawMessage) any { return 1 }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTorn: a journal that breaks off anywhere says what its whole lines do, and the next line is read.
func TestTorn(t *testing.T) {
	_, text := made(t)
	next, err := lineOf(entry{Guest: "new", Over: true})
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		got, whole := parse(text[:n])
		want, _ := parse(text[:bytes.LastIndexByte(text[:n], '\n')+1])
		if text[n] == '\n' {
			want, _ = parse(text[:n+1]) // only the end of its last line is missing
		}
		if diff := cmp.Diff(of(want), of(got)); diff != "" || !whole {
			t.Fatalf("%d bytes: whole %v (-want +got):\n%s", n, whole, diff)
		}
		got, _ = parse(append(bytes.Clone(text[:n]), next...))
		if g := got[len(got)-1]; g.Name != "new" || !g.Over {
			t.Fatalf("%d bytes: the next line is not read", n)
		}
	}
}

// TestFlipped: whichever bit of a journal is changed, what is known of a guest is what it was, or it shows.
func TestFlipped(t *testing.T) {
	dir, text := made(t)
	list, _ := parse(text)
	want := of(list)
	for bit := range 8 * len(text) {
		changed := bytes.Clone(text)
		changed[bit/8] ^= 1 << (bit % 8)
		if got, whole := parse(changed); whole && !cmp.Equal(want, of(got)) {
			t.Fatalf("bit %d: %v", bit, of(got))
		}
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(filepath.Join(dir, File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, atomicfile.ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
}

// FuzzParse: whatever is in the file, what is read has names.
func FuzzParse(f *testing.F) {
	line, _ := lineOf(entry{Guest: "a", BegunMS: 1})
	f.Add(line)
	f.Fuzz(func(t *testing.T, text []byte) {
		list, _ := parse(text)
		for _, g := range list {
			if g.Name == "" {
				t.Fatal("a guest without a name")
			}
		}
	})
}
