package replica

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestSaidOfCopies: whatever byte has changed of what is said of a copy, the copies are not listed, and it is not opened. Of an
// earlier version it has no sum, and is taken unless it cannot be read.
func TestSaidOfCopies(t *testing.T) {
	dir := t.TempDir()
	c, err := openCopies(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "127.0.0.1:7390"}}}
	_, trans := raft.NewInmemTransport("")
	sink, err := c.Create(raft.SnapshotVersionMax, 7, 3, alone, 2, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("a store")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, copiesDir, sink.ID(), saidFile)
	said, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	listed := func() int {
		t.Helper()
		list, err := c.List()
		if err != nil {
			if !strings.Contains(err.Error(), "gadm controllers remove") {
				t.Error(err)
			}
			return -1
		}
		return len(list)
	}
	for at := range int64(len(said)) {
		flip(t, path, at)
		if n := listed(); n >= 0 {
			t.Errorf("byte %d: %d copies are listed", at, n)
		}
		if _, _, err := c.Open(sink.ID()); err == nil {
			t.Errorf("byte %d: it is opened", at)
		}
		flip(t, path, at)
	}
	if n := listed(); n != 1 {
		t.Errorf("%d copies are listed", n)
	}
	older := filepath.Join(dir, copiesDir, "2-3-4")
	if err := os.Mkdir(older, 0o755); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n != 1 {
		t.Errorf("beside one that is being removed %d copies are listed", n)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), sumFile)); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n != 1 {
		t.Errorf("without a sum %d copies are listed", n)
	}
	if err := os.WriteFile(path, said[:len(said)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n >= 0 {
		t.Errorf("half of it: %d copies are listed", n)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n >= 0 {
		t.Errorf("only one of which nothing is known: %d copies are listed", n)
	}
}

// TestCopiesOfShortLives: a member whose processes live too short for a copy makes one of what was committed before, soon after a start.
func TestCopiesOfShortLives(t *testing.T) {
	const records = 30
	m := newMember(t, "a")
	m.patient, m.copies = 100*time.Millisecond, records/2
	m.start()
	t.Cleanup(m.stop)
	_, lead := leader(t, m)
	for n := range records {
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	m.stop()
	m.start()
	until(t, "there is a copy of all", func() bool {
		at, err := kept{m.r}.Copy()
		return err == nil && at >= records
	})
	m.stop()
	m.start()
	if has := m.has(records); has != records {
		t.Errorf("%d of %d records are there", has, records)
	}
}

// TestNoCopyOfUnseen: who reads again what its store has makes no copy of the store, which has more than the entry that it would be of.
func TestNoCopyOfUnseen(t *testing.T) {
	dir := t.TempDir()
	open := func() *Machine {
		m := NewMachine(store.Config{Dir: filepath.Join(dir, "store")}, func() time.Duration { return time.Hour }, slog.New(slog.DiscardHandler))
		if _, err := m.Begin(logThere{}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := store.Found(store.Config{Dir: filepath.Join(dir, "store")}); err != nil {
		t.Fatal(err)
	}
	m := open()
	var batch []byte
	if err := m.st.Lead(func(b []byte) error { batch = bytes.Clone(b); return nil }); err != nil {
		t.Fatal(err)
	}
	for start := range 2 {
		for index := uint64(1); index <= 3; index++ {
			if said := m.Apply(&raft.Log{Index: index, Term: 1, Data: newEntry(1, 0, batch)}); said != stored(index) {
				t.Fatal(said)
			}
			snap, err := m.Snapshot()
			if want := start == 0 || index == 3; want != (err == nil) {
				t.Errorf("start %d, entry %d: %v", start, index, err)
			}
			if err == nil {
				snap.Release()
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		m = open()
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
