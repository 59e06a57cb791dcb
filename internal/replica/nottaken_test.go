package replica

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/internal/state"
)

// TestSnapshotNotTaken: a member that got another one's store, and ended before that was in the place of its own, takes it at its
// next start. It goes on from the log after it, so that what lay between would be missing for good.
func TestSnapshotNotTaken(t *testing.T) {
	t.Parallel()
	a, b := newMember(t, "a"), newMember(t, "b").joins()
	a.start()
	defer func() { a.stop() }()
	_, lead := leader(t, a)
	commit := func(n int) {
		t.Helper()
		if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	commit(0)
	b.start()
	defer func() { b.stop() }()
	if err := a.r.Add(Member{Name: "b", Address: b.address}); err != nil { // its word does not count
		t.Fatal(err)
	}
	until(t, "the record on b", func() bool { return b.has(1) == 1 })
	b.stop()
	commit(1)
	if err := a.r.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	// As it is when it was received.
	received := filepath.Join(b.dir, "log", "snapshots")
	if err := os.RemoveAll(received); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(received, os.DirFS(filepath.Join(a.dir, "log", "snapshots"))); err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 4; n++ {
		b.start()
		commit(n)
		until(t, "the record after the copy on b", func() bool {
			st := b.r.fsm.current()
			if st == nil {
				return false
			}
			_, ok, err := st.Get(jobRecord(n))
			return ok && err == nil
		})
		if got := b.has(n + 1); got != n+1 {
			t.Errorf("b has %d of %d records", got, n+1)
		}
		b.stop()
	}
}
