package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

func open(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(Config{Dir: "db", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loaded(t *testing.T, s *Store) []string {
	t.Helper()
	var out []string
	if err := s.Load(func(r state.Record) error {
		out = append(out, fmt.Sprintf("%c %d %d %s=%s", r.Kind, r.Job, r.Seq, r.Name, r.Value))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCommitIsThereAgain(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	uuid := [16]byte{1, 2, 3}
	rs := []state.Record{
		{Kind: state.KindJob, Job: 7, Value: []byte("seven")},
		{Kind: state.KindJob, Job: 1, Value: []byte("one")},
		{Kind: state.KindHistory, Job: 3, Value: []byte("three")},
		{Kind: state.KindHistory, Job: 9, Value: []byte("nine")},
		{Kind: state.KindNode, Name: "gpu1", Value: []byte("n")},
		{Kind: state.KindUsage, Name: "p/u", Value: []byte("u")},
		{Kind: state.KindEvent, Job: 7, Seq: 2, Value: []byte("b")},
		{Kind: state.KindEvent, Job: 7, Seq: 1, Value: []byte("a")},
		{Kind: state.KindEvent, Job: 8, Seq: 1, Value: []byte("other")},
		{Kind: state.KindUUID, Name: string(uuid[:]), Job: 9, Value: []byte{}},
	}
	if err := s.Commit(rs); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, fs)
	defer s.Close()
	want := []string{"n 0 0 gpu1=n", "u 0 0 p/u=u", "j 7 0 =seven", "h 9 0 =nine"}
	if diff := cmp.Diff(want, loaded(t, s)); diff != "" {
		t.Errorf("loaded records (-want +got):\n%s", diff)
	}
	if s.Epoch() != 2 {
		t.Errorf("epoch of the second start is %d", s.Epoch())
	}
	if n, ok, err := s.NumberOf(uuid); n != 9 || !ok || err != nil {
		t.Errorf("NumberOf = %d, %t, %v", n, ok, err)
	}
	if _, ok, err := s.NumberOf([16]byte{9}); ok || err != nil {
		t.Errorf("NumberOf an unknown UUID = %t, %v", ok, err)
	}
	var lines []string
	for most := 1; most <= 2; most++ {
		n := 0
		if err := s.NewestOf(state.KindEvent, 7, func(r state.Record) (bool, error) {
			lines = append(lines, string(r.Value))
			n++
			return n < most, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"b", "b", "a"}, lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestPowerLoss cuts the power after each commit: what was committed is there.
func TestPowerLoss(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, fs)
	for n := range 50 {
		if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: job.Number(n + 1), Value: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		if n%10 != 0 {
			continue
		}
		after := open(t, fs.CrashClone(vfs.CrashCloneCfg{}))
		if got := len(loaded(t, after)); got != n+1 {
			t.Fatalf("%d of %d committed jobs survived", got, n+1)
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	if err := s.db.Set(keyFormat, []byte("99"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: "db", FS: fs}); err == nil {
		t.Fatal("a store of format 99 was opened")
	}
}

func FuzzRecordKeys(f *testing.F) {
	f.Add([]byte("j12345678"), []byte("v"))
	f.Fuzz(func(t *testing.T, k, v []byte) {
		r, err := record(k, v)
		if err != nil {
			return
		}
		if string(key(r)) != string(k) {
			t.Errorf("key %x became %x", k, key(r))
		}
	})
}

// TestReadAfterClose: who still reads when the store was closed gets an error, and does not end the process.
func TestReadAfterClose(t *testing.T) {
	s, err := Open(Config{Dir: "store", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(state.Record{Kind: state.KindJob, Job: 1}); !errors.Is(err, errClosed) {
		t.Errorf("one record: %v", err)
	}
	if err := s.All(state.KindJob, func(state.Record) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("all of a kind: %v", err)
	}
	if err := s.Load(func(state.Record) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("all that a controller begins with: %v", err)
	}
	if damage, err := s.Scrub("copy", func(state.Record) error { return nil }); damage != nil || !errors.Is(err, errClosed) {
		t.Errorf("all, to look for damage: %v, %v", damage, err)
	}
	if _, err := s.Jobs(1, 10, func(job.Number, []byte) {}); !errors.Is(err, errClosed) {
		t.Errorf("some jobs: %v", err)
	}
	if err := s.Newest(state.KindHistory, func(state.Record) (bool, error) { return true, nil }); !errors.Is(err, errClosed) {
		t.Errorf("the last of a kind: %v", err)
	}
}
