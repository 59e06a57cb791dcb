package replica

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// TestDamagedLog: whatever byte of the log, of what this member has voted, or of what is known of the last copy of a store has changed,
// the start is refused by a sentence that says what to do, or nothing is missing, and what is committed then is there too.
func TestDamagedLog(t *testing.T) {
	const records = 50
	m := newMember(t, "a")
	m.patient = 100 * time.Millisecond
	m.start()
	_, lead := leader(t, m)
	for n := range records {
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.r.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	want := m.standing()
	m.stop()
	whole := t.TempDir()
	if err := os.CopyFS(whole, os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of         string
		most, step int64
		refused    bool // some of it is
	}{
		{"wal/*.wal", 4096, 311, true},
		{"wal/wal-meta.db", 1024, 61, false},
		{"snapshots/*/meta.json", 4096, 61, true},
	} {
		files, err := filepath.Glob(filepath.Join(m.dir, "log", c.of))
		if err != nil || len(files) != 1 {
			t.Fatalf("%d files %s: %v", len(files), c.of, err)
		}
		st, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for at := int64(0); at < min(st.Size(), c.most); at += c.step {
			if err := errors.Join(os.RemoveAll(m.dir), os.CopyFS(m.dir, os.DirFS(whole))); err != nil {
				t.Fatal(err)
			}
			flip(t, files[0], at)
			refused += m.startsWhole(records, want, fmt.Sprintf("%s, byte %d", c.of, at))
		}
		if c.refused != (refused > 0) {
			t.Errorf("%s: %d were refused", c.of, refused)
		}
	}
}

// standing is who the members are, whoever of them leads.
func (m *member) standing() string {
	members, err := m.r.Members()
	if err != nil {
		m.t.Error(err)
	}
	for i := range members {
		members[i].Leads = false
	}
	return fmt.Sprint(members)
}

// startsWhole starts a member some of whose log is damaged; 1: that is refused.
func (m *member) startsWhole(records int, standing, what string) int {
	defer m.stop()
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	if m.r, err = Open(m.config(ln)); err != nil {
		m.r = nil
		if text := err.Error(); strings.Contains(text, "goroutine") || strings.Count(text, "gadm controllers remove") != 1 {
			m.t.Errorf("%s: %v", what, err)
		}
		return 1
	}
	if has := m.has(records); has != records {
		m.t.Errorf("%s: %d of %d records are there, and nothing is said", what, has, records)
	}
	if got := m.standing(); got != standing {
		m.t.Errorf("%s: the members are %s, not %s", what, got, standing)
		return 0
	}
	var lead *Lead
	until(m.t, what+": it leads, or says why not", func() bool {
		lead, err = m.r.Ready()
		return err == nil && lead.Begin() == nil || len(m.r.Failed()) > 0
	})
	select {
	case why := <-m.r.Failed():
		if text := why.Error(); !strings.Contains(text, "gadm controllers remove") {
			m.t.Errorf("%s: %v", what, why)
		}
		return 1
	default:
	}
	if err := lead.Store.Commit([]state.Record{jobRecord(records)}); err != nil {
		m.t.Errorf("%s: it stores nothing: %v", what, err)
	} else if has := m.has(records + 1); has != records+1 {
		m.t.Errorf("%s: a record that was committed is not there", what)
	}
	return 0
}

// TestLogEndsBeforeCopy: a member whose log ends before its last copy of a store, as where it was killed when it had received that, goes on.
// One whose log and copy both end before its store has lost what it had agreed to.
func TestLogEndsBeforeCopy(t *testing.T) {
	const records = 10
	m := newMember(t, "a")
	m.patient = 100 * time.Millisecond
	m.start()
	_, lead := leader(t, m)
	commit := func(n int) {
		t.Helper()
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range records {
		commit(n)
	}
	if err := m.r.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	cut := func() {
		t.Helper()
		last, err := m.r.wal.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		m.stop()
		r := &Replica{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
		log, err := r.openLog(filepath.Join(m.dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.DeleteRange(last-3, last), log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	m.start()
	t.Cleanup(m.stop)
	_, lead = leader(t, m)
	commit(records)
	if has := m.has(records + 1); has != records+1 {
		t.Errorf("%d of %d records are there", has, records+1)
	}
	commit(records + 1)
	cut()
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		t.Fatal(err)
	}
	if m.r, err = Open(m.config(ln)); err == nil {
		t.Fatal("it starts without the end of its log")
	}
	m.r = nil
	if text := err.Error(); !strings.Contains(text, "the end of the log is lost") || !strings.Contains(text, "gadm controllers remove") {
		t.Error(err)
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

// TestLogNotWritten: a member that cannot write its log ends by a sentence, and does not stay one that may be elected; one whose disk is full
// stays, says so once, and goes on when there is room.
func TestLogNotWritten(t *testing.T) {
	m := newMember(t, "a")
	m.start()
	_, lead := leader(t, m)
	if err := m.r.wal.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err == nil {
		t.Error("it acknowledged what it could not write")
	}
	select {
	case err := <-m.r.Failed():
		if !strings.Contains(err.Error(), "write to the common log") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("nothing was said for a minute")
	}
	m.stop()

	var said strings.Builder
	full := newMachine(m.config(nil).Store, slog.New(slog.NewTextHandler(&said, nil)))
	for range 3 {
		full.notWritten(&os.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC})
	}
	if n := strings.Count(said.String(), "disk is full"); n != 1 || full.whole() != nil {
		t.Errorf("said %d times; %v", n, full.whole())
	}
}
