package transfer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDamagedEntry: an entry of the cache that the disk has changed is found, and nobody else gets it; who holds it keeps
// its files until it lets go. So is one whose note is damaged, whichever byte it is, when it is asked for, and that is told. An entry of an
// earlier version is taken as it is at the first look.
func TestDamagedEntry(t *testing.T) {
	c := testClient()
	from := files(t, map[string]int{"x": 1 << 10})
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var told []Damage // of what was asked for
	k, err := OpenCache(t.TempDir(), 4<<20, func(d Damage) { told = append(told, d) })
	if err != nil {
		t.Fatal(err)
	}
	get := func(holder string) (key string) {
		t.Helper()
		src := DirSource(Dir{Root: root}, "")
		list, err := src.List(t.Context())
		if err == nil {
			key, _, err = k.Get(t.Context(), c, Caller{Scope: "p", User: "ann", Holder: holder}, Fetch{URI: "file:///p/", Source: src, Objects: list})
		}
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	look := func() []Damage {
		t.Helper()
		all, err := k.Verify(func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	read := func(path string) []byte {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	flip := func(path string, at int) {
		t.Helper()
		st, err := os.Stat(path)
		b := read(path)
		b[at] ^= 4
		if err = errors.Join(err, os.WriteFile(path, b, 0o600), os.Chtimes(path, st.ModTime(), st.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	want := read(filepath.Join(from, "x"))
	key := get("r1")
	file, note := filepath.Join(k.Content(key), "x"), filepath.Join(k.dir, key, marker)
	if all := look(); len(all) > 0 {
		t.Fatalf("a whole cache: %+v", all)
	}
	running, err := os.Open(k.Content(key)) // as a mount has it
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	flip(file, 100)
	if diff := cmp.Diff([]Damage{{Key: key, Why: "its files are not what they were when they came", Held: []string{"r1"}}}, look()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if get("r2") != key || !bytes.Equal(read(file), want) {
		t.Error("the next one gets what is damaged")
	}
	collect := func() int {
		t.Helper()
		if _, err := k.Collect(time.Now()); err != nil {
			t.Fatal(err)
		}
		names, err := running.Readdirnames(-1)
		if _, serr := running.Seek(0, 0); err != nil || serr != nil {
			return 0 // it is removed
		}
		return len(names)
	}
	if n := collect(); n != 1 {
		t.Errorf("who holds it has %d files", n)
	}
	k.Drop("r1")
	k.Drop("r2")
	if n := collect(); n != 0 || !bytes.Equal(read(file), want) {
		t.Errorf("nobody holds it, and it has %d files", n)
	}
	for at := range read(note) {
		flip(file, 0)
		flip(note, at)
		if get("r3"); !bytes.Equal(read(file), want) {
			t.Errorf("with byte %d of its note changed the entry is taken as whole", at)
		}
		if diff := cmp.Diff([]Damage{{Key: key, Why: badNote}}, told, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("with byte %d of its note changed, -want +told:\n%s", at, diff)
		}
		told = nil
		k.Drop("r3")
	}
	if err := os.WriteFile(note, []byte("1024\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := look(); len(all) > 0 {
		t.Errorf("one of an earlier version: %+v", all)
	}
	flip(file, 0)
	if all := look(); len(all) != 1 || len(all[0].Held) > 0 {
		t.Errorf("the same after that: %+v", all)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("nobody holds it, and it stays")
	}
}
