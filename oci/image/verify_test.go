package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/image/layout"
	"gbatch/oci/treesum"
)

// flip changes one bit of a file, as a disk may: its size and times are as before.
func flip(t *testing.T, name string) {
	t.Helper()
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.Chtimes(name, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, s *Store) []Damage {
	t.Helper()
	found, err := s.Verify(func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func body(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDamagedLayer changes one bit of a file in a layer that was unpacked: it is noticed, no pull gives it to anybody any
// more, only this layer is pulled again, and what runs on it keeps its files until it is released, over a
// restart and beside those that began later.
func TestDamagedLayer(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "the seed"))
	s := open(t, Config{})
	img := pull(t, s, r, nil)
	if found := verify(t, s); len(found) > 0 {
		t.Fatalf("a store that is whole: %+v", found)
	}
	if err := s.Hold("runs", digest); err != nil {
		t.Fatal(err)
	}
	running, err := os.Open(img.Layers[1]) // as a mount has it
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	flip(t, img.Layers[1]+"/etc/seed")
	want := []Damage{{Layer: filepath.Base(filepath.Dir(img.Layers[1])), Held: []string{digest}, Why: "its files are not what they were when it was unpacked"}}
	if diff := cmp.Diff(want, verify(t, s)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	f.reset()
	again := pull(t, s, r.WithDigest(digest), nil)
	if got := body(t, again.Layers[1], "etc/seed"); got != "the seed" {
		t.Errorf("the layer that was pulled again has %q", got)
	}
	if n := f.count("GET", "/blobs/"); n != 2 {
		t.Errorf("%d blobs were asked for again: %v", n, f.seen)
	}
	still := func(when string) {
		t.Helper()
		if dir, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", running.Fd())); err != nil || body(t, dir, "etc/seed") == "the seed" {
			t.Errorf("%s: what runs has %s, %v", when, dir, err)
		}
	}
	for _, when := range []string{"a collection", "another hold", "a restart"} {
		switch when {
		case "another hold":
			err = s.Hold("runs", digest)
		case "a restart":
			s.Close()
			s = open(t, Config{Dir: s.config.Dir})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(s.config.Now()); err != nil {
			t.Fatal(err)
		}
		still(when)
	}
	if found := verify(t, s); len(found) > 0 {
		t.Errorf("after that: %+v", found)
	}
	if err := s.Release("runs"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(s.config.Now()); err != nil {
		t.Fatal(err)
	}
	if left := slices.DeleteFunc(names(t, s.layout.Layers), func(n string) bool { return !isAside(n) }); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestDamagedUnheld: what nobody holds is removed at once. A file that is gone, one that has come and a mode are
// damage too; so is a bit of a layer of directories, and of the note beside a layer.
func TestDamagedUnheld(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", build(t, imagetest.Options{Layers: [][]imagetest.File{
		{{Name: "tmp/", Mode: 0o1777}, {Name: "base", Body: []byte("base of all")}}, {{Name: "tmp/x", Body: []byte("x")}}}}))
	s := open(t, Config{})
	for name, do := range map[string]func(img *Image) error{
		"gone":        func(img *Image) error { return os.Remove(img.Layers[0] + "/base") },
		"come":        func(img *Image) error { return os.WriteFile(img.Layers[0]+"/more", nil, 0o600) },
		"mode":        func(img *Image) error { return os.Chmod(img.Layers[1]+"/tmp/x", 0o4777) },
		"directories": func(img *Image) error { return os.Chmod(img.Layers[2]+"/tmp", 0o777) },
	} {
		img := pull(t, s, r.WithDigest(digest), nil)
		if len(img.Layers) != 3 {
			t.Fatalf("layers %v", img.Layers)
		}
		if err := do(img); err != nil {
			t.Fatal(err)
		}
		if found := verify(t, s); len(found) != 1 || len(found[0].Held) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		if left := names(t, s.layout.Layers); len(left) != 2 {
			t.Errorf("%s: the store has %v", name, left)
		}
	}
	img := pull(t, s, r.WithDigest(digest), nil)
	marker := filepath.Join(filepath.Dir(img.Layers[0]), layout.MarkerName)
	s.Close()
	flip(t, marker)
	s = open(t, Config{Dir: s.config.Dir})
	if left := names(t, s.layout.Layers); len(left) != 2 {
		t.Errorf("with a note that is damaged the store has %v", left)
	}
	if got := body(t, pull(t, s, r.WithDigest(digest), nil).Layers[0], "base"); got != "base of all" {
		t.Errorf("then the layer has %q", got)
	}
}

// TestVerifyGoesOn: a layer that cannot be read for want of something of the machine's is neither damaged nor
// in the way of those behind it; when the pace ends the work, no more are read.
func TestVerifyGoesOn(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	img := pull(t, s, r, nil)
	first, last := img.Layers[0], img.Layers[1]
	if first > last {
		first, last = last, first
	}
	s.treeSum = func(dir string, how treesum.How) (string, error) {
		if dir == first {
			return "", fmt.Errorf("read %s: %w", dir, unix.ENFILE)
		}
		return treesum.Of(dir, how)
	}
	if err := os.WriteFile(last+"/more", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("the machine is going down")
	if found, err := s.Verify(func(int64) error { return stop }); len(found) > 0 || !errors.Is(err, stop) {
		t.Errorf("when it is to stop: %+v, %v", found, err)
	}
	found, err := s.Verify(func(int64) error { return nil })
	if len(found) != 1 || found[0].Layer != filepath.Base(filepath.Dir(last)) || !errors.Is(err, unix.ENFILE) {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := os.Stat(first); err != nil {
		t.Errorf("what could not be read: %v", err)
	}
}

// TestVerifyOlderLayer: of a layer without a sum, what it is at the first look counts from then on.
func TestVerifyOlderLayer(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	img := pull(t, s, r, nil)
	id := filepath.Base(filepath.Dir(img.Layers[0]))
	s.mu.Lock()
	old := s.layers[id]
	old.Sum = ""
	s.layers[id] = old
	s.mu.Unlock()
	if found := verify(t, s); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	s.Close()
	s = open(t, Config{Dir: s.config.Dir})
	if sum, err := treesum.Of(img.Layers[0], treesum.How{}); err != nil || s.layers[id].Sum != sum {
		t.Errorf("it was noted as %q, and is %q, %v", s.layers[id].Sum, sum, err)
	}
	flip(t, img.Layers[0]+"/etc/base")
	if found := verify(t, s); len(found) != 1 || !strings.HasPrefix(found[0].Layer, id) {
		t.Errorf("%+v", found)
	}
}
