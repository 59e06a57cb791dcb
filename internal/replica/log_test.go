package replica

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"gbatch/internal/state"
)

// TestShortenedLog: a log from whose end entries were taken, as when a leader that
// nobody followed comes back, is read again after a restart, and goes on.
func TestShortenedLog(t *testing.T) {
	r := &Replica{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	dir := t.TempDir()
	if err := MakeDir(dir, 0); err != nil {
		t.Fatal(err)
	}
	log, err := r.openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(n, term uint64) *raft.Log {
		return &raft.Log{Index: n, Term: term, Data: fmt.Appendf(nil, "%d of %d", n, term)}
	}
	var want []string
	for round := uint64(1); round <= 3; round++ {
		first := 1 + (round-1)*5
		for n := first; n < first+10; n++ {
			if err := log.StoreLog(entry(n, round)); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.DeleteRange(first+5, first+9); err != nil {
			t.Fatal(err)
		}
		for n := first; n < first+5; n++ {
			want = append(want, string(entry(n, round).Data))
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if log, err = r.openLog(dir); err != nil {
			t.Fatal(err)
		}
		var got []string
		last, err := log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		for n := uint64(1); n <= last; n++ {
			var l raft.Log
			if err := log.GetLog(n, &l); err != nil {
				t.Fatalf("round %d, entry %d: %v", round, n, err)
			}
			got = append(got, string(l.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// TestDamagedLog: whatever byte of the log has changed, the start is refused by a
// sentence, or nothing is missing.
func TestDamagedLog(t *testing.T) {
	const records = 50
	m := newMember(t, "a")
	m.start()
	_, lead := leader(t, m)
	for n := range records {
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	m.stop()
	files, err := filepath.Glob(filepath.Join(m.dir, "log", logDir, "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of the log: %v", len(files), err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 0; at < 4096; at += 311 {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 0x40
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", m.address)
		if err != nil {
			t.Fatal(err)
		}
		m.r, err = Open(m.config(ln))
		switch {
		case err != nil && strings.Contains(err.Error(), "goroutine"):
			t.Errorf("byte %d: %v", at, err)
		case err != nil:
			refused++
			m.r = nil
			ln.Close()
		case m.has(records) != records:
			t.Errorf("byte %d: %d of %d records are there, and nothing is said", at, m.has(records), records)
		}
		m.stop()
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// TestNewerEntry: a member that comes upon an entry of a version that it does not know ends with a sentence,
// at each start. It applies nothing after that entry, so that a newer program goes on from there with nothing missing.
func TestNewerEntry(t *testing.T) {
	m := newMember(t, "a")
	m.start()
	defer func() { m.stop() }()
	_, lead := leader(t, m)
	if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err != nil {
		t.Fatal(err)
	}
	newer := newEntry(lead.term, 0, nil)
	newer[0]++
	if err := m.r.raft.Apply(newer, 0).Error(); err != nil {
		t.Fatal(err)
	}
	if err := lead.Store.Commit([]state.Record{jobRecord(1)}); err == nil {
		t.Error("who could not apply an entry acknowledged the next one")
	}
	if _, err := m.r.Ready(); err == nil {
		t.Error("who could not apply an entry leads")
	}
	if err := m.r.raft.Snapshot().Error(); err == nil {
		t.Error("a snapshot leaves out an entry that was not applied")
	}
	for start := range 2 {
		select {
		case err := <-m.r.Failed():
			if want := "of a newer gctld: update this controller"; !strings.Contains(err.Error(), want) {
				t.Errorf("start %d: %v, want %q", start, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("start %d: nothing was said for a minute", start)
		}
		if got := m.has(2); got != 1 {
			t.Errorf("start %d: %d records were applied, want the one before that entry", start, got)
		}
		m.stop()
		m.start()
	}
}
