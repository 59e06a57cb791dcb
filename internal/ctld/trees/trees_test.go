package trees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// world is a store with what it asks of others.
type world struct {
	*testing.T
	*Store
	dir    string
	now    time.Time
	most   tree.Size
	needed map[string]bool
	others Others
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, dir: t.TempDir(), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), needed: map[string]bool{}}
	w.reopen()
	return w
}

// reopen is what a killed controller does when it is back.
func (w *world) reopen() {
	w.Helper()
	s, err := Open(Config{Dir: w.dir, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}, Rules{Most: func(string) tree.Size { return w.most }, Free: func() int64 { return 0 }, Keep: func() time.Duration { return 8 * 24 * time.Hour },
		Needed: func(string) (map[string]bool, error) { return w.needed, nil }, Others: w.others})
	if err != nil {
		w.Fatal(err)
	}
	w.Store = s
}

// packed are the chunks of a directory with files of these contents.
func packed(t *testing.T, texts ...string) (tree.Manifest, map[string][]byte) {
	dir := t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chunks := map[string][]byte{}
	m, _, err := tree.Packing{Dir: dir, Most: tree.Size{Files: 100, Bytes: 1 << 30}, Emit: func(c tree.Chunk, data []byte) error {
		chunks[c.Sum] = append([]byte(nil), data...)
		return nil
	}}.Pack(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return m, chunks
}

// bring sends all of a tree.
func (w *world) bring(user string, texts ...string) (string, error) {
	w.Helper()
	m, chunks := packed(w.T, texts...)
	_, missing, err := w.add(user, m)
	for _, sum := range missing {
		if err == nil {
			err = w.put(user, sum, chunks[sum])
		}
	}
	if err != nil {
		return "", err
	}
	id, missing, err := w.add(user, m)
	if err == nil && len(missing) > 0 {
		w.Errorf("%v are missing", missing)
	}
	return id, err
}

func (w *world) has(user, id string) bool {
	w.Helper()
	ok, err := w.Has(w.Context(), user, id)
	if err != nil {
		w.Fatal(err)
	}
	return ok
}

// TestKeptOverACrash: what was acknowledged is there when the controller is back,
// byte for byte, and what was left half written is not in the way.
func TestKeptOverACrash(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("0123456789abcdef", 100_000)
	id, err := w.bring("ann", "one", big)
	if err != nil {
		t.Fatal(err)
	}
	m, chunks := packed(t, "one", big)
	left := w.users["ann"].chunkPath(m.Chunks[0].Sum) + ".tmp"
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	if !w.has("ann", id) {
		t.Fatal("it is gone")
	}
	r, err := w.Store.open("ann", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was half written: %v", err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, c := range m.Chunks {
		want = append(want, chunks[c.Sum]...)
	}
	if string(got) != string(want) {
		t.Errorf("read %d bytes, want %d", len(got), len(want))
	}
	if _, err := r.Seek(700_000, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != string(want[700_000:]) {
		t.Errorf("from the middle: %d bytes, %v", len(rest), err)
	}
}

// TestOfOneUser: nobody gets at another's content by its name.
func TestOfOneUser(t *testing.T) {
	w := newWorld(t)
	id, err := w.bring("ann", "secret")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := packed(t, "secret")
	if _, missing, err := w.add("bob", m); len(missing) != 1 || err != nil {
		t.Errorf("bob lacks %v, %v", missing, err)
	}
	if w.has("bob", id) || w.has("../"+"ann", id) {
		t.Error("somebody else has it")
	}
}

// TestRefused: chunks that are not what they are called, and trees that no packer
// makes, are kept by nobody.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	if err := w.put("ann", tree.SumOf([]byte("x")), []byte("y")); !errors.Is(err, errCorrupt) {
		t.Errorf("another content: %v", err)
	}
	for _, sum := range []string{"", "..", "../../x", strings.Repeat("A", 64)} {
		if err := w.put("ann", sum, []byte("y")); err == nil {
			t.Errorf("took a chunk called %q", sum)
		}
	}
	if err := w.put("ann", tree.SumOf(make([]byte, tree.MaxChunk+1)), make([]byte, tree.MaxChunk+1)); err == nil {
		t.Error("took too large a chunk")
	}
	text := []byte("this is no archive")
	if err := w.put("ann", tree.SumOf(text), text); err != nil {
		t.Fatal(err)
	}
	m := tree.Manifest{Chunks: []tree.Chunk{{Sum: tree.SumOf(text), Size: int64(len(text))}}}
	if _, _, err := w.add("ann", m); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("no archive: %v", err)
	}
}

// TestBoundsOfAUser: what no job needs makes room, and what jobs need does not.
func TestBoundsOfAUser(t *testing.T) {
	w := newWorld(t)
	w.most = tree.Size{Bytes: 3 * 2 * leastCharge, Files: 100} // for a chunk, and for the list of it
	first, err := w.bring("ann", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"2", "3"} {
		if _, err := w.bring("ann", text); err != nil {
			t.Fatal(err)
		}
	}
	var e *api.Error
	if _, err := w.bring("ann", "4"); !errors.As(err, &e) || e.Code != api.CodeOverLimit {
		t.Errorf("while all is new: %v", err)
	}
	if _, err := w.bring("bob", "4"); err != nil {
		t.Errorf("another user: %v", err)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.needed[first] = true
	if _, err := w.bring("ann", "4"); err != nil {
		t.Errorf("when there is old: %v", err)
	}
	if !w.has("ann", first) {
		t.Error("what a job needs made room")
	}
}

// TestTreesOfTheSameChunks: of two chunks one can make trees without end: the same
// archive, cut otherwise. Each counts; and what is behind an archive's end, where
// chunks could stand in any order, is refused.
func TestTreesOfTheSameChunks(t *testing.T) {
	w := newWorld(t)
	w.most = tree.Size{Bytes: 10 * leastCharge, Files: 100}
	var m tree.Manifest
	add := func(data []byte) {
		if err := w.put("ann", tree.SumOf(data), data); err != nil {
			t.Fatal(err)
		}
		m.Chunks = append(m.Chunks, tree.Chunk{Sum: tree.SumOf(data), Size: int64(len(data))})
	}
	for _, size := range []int{512, 1024, 256, 128} {
		add(make([]byte, size))
	}
	one, two, quarter, eighth := m.Chunks[0], m.Chunks[1], m.Chunks[2], m.Chunks[3]
	taken := 0
	for _, list := range [][]tree.Chunk{{two}, {one, one}, {quarter, quarter, one}, {one, quarter, quarter}, {quarter, one, quarter}, {quarter, quarter, quarter, quarter}, {eighth, eighth, quarter, one}, {eighth, eighth, one, quarter}} {
		_, missing, err := w.add("ann", tree.Manifest{Chunks: list})
		if e := (*api.Error)(nil); err != nil && (!errors.As(err, &e) || e.Code != api.CodeOverLimit) || len(missing) > 0 {
			t.Fatal(err, missing)
		}
		if err == nil {
			taken++
		}
	}
	if taken != 6 {
		t.Errorf("%d empty trees were taken, want 6: four chunks and six lists are all that ann may have", taken)
	}
	if _, _, err := w.add("ann", tree.Manifest{Chunks: []tree.Chunk{two, one}}); err == nil || !strings.Contains(err.Error(), "behind the end") {
		t.Errorf("more than an archive: %v", err)
	}
	w.reopen()
	if _, err := w.owner("ann"); err != nil || w.users["ann"].bytes != 10*leastCharge {
		t.Errorf("after a restart it has %d, %v", w.users["ann"].bytes, err)
	}
}

// TestCollected: a tree stays while a job needs it, and as long afterwards as the
// site says; then nothing of it is left, but what another has.
func TestCollected(t *testing.T) {
	w := newWorld(t)
	id, err := w.bring("ann", "x")
	if err != nil {
		t.Fatal(err)
	}
	w.needed[id] = true
	for range 20 {
		w.now = w.now.Add(24 * time.Hour)
		if err := w.Collect(); err != nil {
			t.Fatal(err)
		}
	}
	w.needed = map[string]bool{}
	w.now = w.now.Add(6 * 24 * time.Hour)
	if err := w.Collect(); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	o := w.users["ann"]
	if o.trees[id] == nil {
		t.Fatal("it went too early")
	}
	w.now = w.now.Add(3 * 24 * time.Hour)
	if err := w.Collect(); err != nil {
		t.Fatal(err)
	}
	if w.has("ann", id) {
		t.Error("it is still there")
	}
	w.now = w.now.Add(2 * time.Hour)
	if err := w.Collect(); err != nil {
		t.Fatal(err)
	}
	if o.bytes != 0 || len(o.chunks) != 0 || o.files != 0 {
		t.Errorf("%d bytes, %d chunks, %d files are left", o.bytes, len(o.chunks), o.files)
	}
}

// TestADiskThatChangesBytes: a job does not get what its user has not sent.
func TestADiskThatChangesBytes(t *testing.T) {
	w := newWorld(t)
	id, err := w.bring("ann", "x")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := packed(t, "x")
	path := w.users["ann"].chunkPath(m.Chunks[0].Sum)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := w.Store.open("ann", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "the disk has changed them") {
		t.Errorf("read %v", err)
	}
}

// TestVerify changes one bit of a chunk of a directory: that one is given up and said, another one is
// whole, and a client that brings it again heals it.
func TestVerify(t *testing.T) {
	w := newWorld(t)
	shared := strings.Repeat("shared", 1000)
	first, err := w.bring("ann", shared)
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.bring("ann", "other")
	if err != nil {
		t.Fatal(err)
	}
	pace := func(int64) error { return nil }
	if gone, err := w.Verify(pace); err != nil || len(gone) > 0 {
		t.Fatalf("of whole directories: %q, %v", gone, err)
	}
	m, _ := packed(t, shared)
	path := w.users["ann"].chunkPath(m.Chunks[0].Sum)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	gone, err := w.Verify(pace)
	if err != nil || len(gone) != 1 || !strings.Contains(gone[0], first) {
		t.Errorf("the damaged one: %q, %v", gone, err)
	}
	for id, want := range map[string]bool{first: false, other: true} {
		if has, err := w.Has(t.Context(), "ann", id); err != nil || has != want {
			t.Errorf("directory %s is there: %t, %v; want %t", id, has, err, want)
		}
	}
	again, err := w.bring("ann", shared)
	if err != nil || again != first {
		t.Errorf("brought again: %s, %v", again, err)
	}
	if gone, err := w.Verify(pace); err != nil || len(gone) > 0 {
		t.Errorf("after it was brought again: %q, %v", gone, err)
	}
}
