package replica

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
)

var (
	aLog   = types.PersistentState{NextSegmentID: 8, Segments: []types.SegmentInfo{{ID: 7, BaseIndex: 120, MinIndex: 130, Codec: 1, CreateTime: time.Unix(1_800_000_000, 0).UTC(), SizeLimit: 64 << 20}}}
	aVote  = map[string]string{"CurrentTerm": "\x05\x00\x00\x00\x00\x00\x00\x00", voteTerm: "\x05\x00\x00\x00\x00\x00\x00\x00", "LastVoteCand": "127.0.0.1:7390"}
	noMeta = slog.New(slog.DiscardHandler)
)

// keeps has something keep a log's files and a vote.
func keeps(t *testing.T, m types.MetaStore, dir string) {
	t.Helper()
	if _, err := m.Load(dir); err != nil {
		t.Fatal(err)
	}
	errs := []error{m.CommitState(aLog)}
	for key, value := range aVote {
		errs = append(errs, m.SetStable([]byte(key), []byte(value)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kept reads them.
func keptIn(dir string) (log types.PersistentState, vote map[string]string, err error) {
	m := &metaFile{log: noMeta}
	log, err = m.Load(dir)
	vote = map[string]string{}
	for key := range aVote {
		value, errGet := m.GetStable([]byte(key))
		vote[key], err = string(value), errors.Join(err, errGet)
	}
	return log, vote, errors.Join(err, m.Close())
}

// has looks whether all is there.
func hasAll(t *testing.T, dir, what string) {
	t.Helper()
	log, vote, err := keptIn(dir)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if diff := cmp.Diff(aLog, log); diff != "" {
		t.Errorf("%s: files (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(aVote, vote); diff != "" {
		t.Errorf("%s: vote (-want +got):\n%s", what, diff)
	}
}

// metaPlaces makes a file, and gives its path and how long each of its texts is.
func metaPlaces(t *testing.T) (path string, long int64) {
	dir := t.TempDir()
	m := &metaFile{log: noMeta}
	keeps(t, m, dir)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, metaName)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	hasAll(t, dir, "as it was written")
	return path, st.Size() - metaRoom
}

// TestMetaFileMends: whatever byte of one text has changed, the other one counts, and both are whole then; where both have, that is said.
func TestMetaFileMends(t *testing.T) {
	path, long := metaPlaces(t)
	dir := filepath.Dir(path)
	for place := range int64(2) {
		for at := int64(0); at < long; at += 5 {
			flip(t, path, place*metaRoom+at)
			hasAll(t, dir, "one is damaged")
			flip(t, path, (1-place)*metaRoom+at/2)
			hasAll(t, dir, "the other one is damaged later")
		}
	}
	flip(t, path, long-1)
	flip(t, path, metaRoom+long-1)
	if _, _, err := keptIn(dir); !errors.Is(err, types.ErrCorrupt) {
		t.Errorf("both are damaged: %v", err)
	}
}

// TestMetaFileCut: where the controller ends at whatever byte of a write, what was kept before is there, or what was written.
func TestMetaFileCut(t *testing.T) {
	path, _ := metaPlaces(t)
	dir := filepath.Dir(path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := &metaFile{log: noMeta}
	if _, err := m.Load(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.SetStable([]byte("LastVoteCand"), []byte("other")), m.Close()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	long := len(after) - metaRoom
	for cut := range 2 * long {
		text := append([]byte(nil), before...)
		copy(text, after[:min(cut, long)])
		if cut > long {
			text = append(text[:metaRoom], after[metaRoom:metaRoom+cut-long]...)
			text = append(text, before[min(len(before), len(text)):]...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		log, vote, err := keptIn(dir)
		if diff := cmp.Diff(aLog, log); err != nil || diff != "" {
			t.Fatalf("after %d bytes: %v (-want +got):\n%s", cut, err, diff)
		}
		if got := vote["LastVoteCand"]; got != "other" && (cut >= long || got != aVote["LastVoteCand"]) {
			t.Errorf("after %d bytes of %d: voted for %q", cut, long, got)
		}
	}
}

// TestMetaFileOfLibrary: what the library's database has is taken over, and an older program does not take the file for one of a
// new log.
func TestMetaFileOfLibrary(t *testing.T) {
	dir := t.TempDir()
	old := &metadb.BoltMetaDB{}
	keeps(t, old, dir)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		hasAll(t, dir, "of the library")
	}
	older := &metadb.BoltMetaDB{}
	if _, err := older.Load(dir); err == nil {
		t.Error("an older program opens the file")
	}
	if err := older.Close(); err != nil {
		t.Error(err)
	}
}

// TestMetaFileIsGone: a log of which the file is gone is not taken for a new one.
func TestMetaFileIsGone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0000000000000001-0000000000000001.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keptIn(dir); !errors.Is(err, types.ErrCorrupt) {
		t.Error(err)
	}
}
