package replica

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// damagedStore is a member that has committed records, most of which are in a table, and does not run.
func damagedStore(t *testing.T, records int) *member {
	m := newMember(t, "a")
	for n := range records {
		if n == 0 || n == records/2 { // what is in the store's log goes into a table at a start
			m.stop()
			m.start()
		}
		_, lead := leader(t, m)
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	m.stop()
	return m
}

// flip turns a bit around in a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x10
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedStoreIsTakenAnew: whatever byte of a member's store has changed, it has all records, by what the log and the last
// copy have; or its start is refused, and what it says to do is what the members of several can do.
func TestDamagedStoreIsTakenAnew(t *testing.T) {
	const records = 20
	m := damagedStore(t, records)
	t.Cleanup(m.stop)
	dir := filepath.Join(m.dir, "store")
	files, err := filepath.Glob(dir + "*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	whole := t.TempDir()
	if err := os.CopyFS(whole, os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	anew := 0
	for _, file := range append(files, dir+store.MarkSuffix) {
		st, err := os.Stat(file)
		if err != nil || st.Size() == 0 {
			continue
		}
		for part := range int64(5) {
			m.stop()
			if err := os.RemoveAll(m.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(m.dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			flip(t, file, st.Size()*part/5)
			anew += m.mends(records, strings.TrimPrefix(file, m.dir))
		}
	}
	if anew == 0 {
		t.Error("no store was taken anew")
	}
}

// mends starts a member, whose store is damaged, until it has read all of it; 1: the store was taken anew.
func (m *member) mends(records int, file string) int {
	for range 3 {
		ln, err := net.Listen("tcp", m.address)
		if err != nil {
			m.t.Fatal(err)
		}
		if m.r, err = Open(m.config(ln)); err != nil {
			m.r = nil
			if text := err.Error(); !strings.Contains(text, "gadm controllers remove") || strings.Contains(text, "gctld restore") || strings.Contains(text, "accept-loss") {
				m.t.Errorf("%s: it is refused by %v", file, err)
			}
			return 0
		}
		leader(m.t, m)
		var damage error
		if err := m.r.Read(func(s *store.Store) error {
			damage, err = s.Scrub(filepath.Join(m.t.TempDir(), "copy"), func(state.Record) error { return nil })
			return err
		}); err != nil {
			m.t.Fatal(err)
		}
		if damage == nil {
			if has := m.has(records); has != records {
				m.t.Errorf("%s: %d of %d records are there", file, has, records)
			}
			if _, err := os.Stat(filepath.Join(m.dir, "store.damaged")); err == nil {
				return 1
			}
			return 0
		}
		select {
		case <-m.r.Failed():
		default:
			if !strings.Contains(damage.Error(), "gadm controllers remove") {
				m.t.Errorf("%s: found damaged, %v, and it goes on", file, damage)
			}
			return 0
		}
		m.stop()
	}
	m.t.Errorf("%s: it is damaged after each start", file)
	return 0
}

// TestDamagedEntry: an entry of the log that the disk has changed is not applied to a store that is taken anew from it, and is given to
// nobody: the start is refused.
func TestDamagedEntry(t *testing.T) {
	const records = 20
	m := damagedStore(t, records)
	t.Cleanup(m.stop)
	files, err := filepath.Glob(filepath.Join(m.dir, "log", logDir, "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files of the log: %v", len(files), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, jobRecord(records/2).Value)
	if at < 0 {
		t.Fatal("the record is not in the log")
	}
	flip(t, files[0], int64(at))
	if err := os.RemoveAll(filepath.Join(m.dir, "store")); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		t.Fatal(err)
	}
	if m.r, err = Open(m.config(ln)); err == nil {
		leader(t, m)
		t.Fatalf("it starts, and has %d of %d records", m.has(records), records)
	}
	m.r = nil
	if text := err.Error(); !strings.Contains(text, "of the common log is damaged") || !strings.Contains(text, "gadm controllers remove") {
		t.Error(err)
	}
}
