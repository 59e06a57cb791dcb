package replica

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestNewcomerVotesForNobody: b missed that d takes part, and that c was taken out, emptied and added again. It knows of
// a, itself and c, and asks c for its vote: the two would lead, and lack what a and d have agreed on.
func TestNewcomerVotesForNobody(t *testing.T) {
	t.Parallel()
	a, b, c, d, all := four(t)
	asked := func(what string, ok func(*Lead, *Replica) bool) { // of who leads
		t.Helper()
		until(t, what, func() bool { m, lead := leader(t, all...); return ok(lead, m.r) })
	}
	add := func(m *member, counts bool) {
		asked(m.name+" takes part", func(_ *Lead, r *Replica) bool {
			return r.Add(Member{Name: m.name, Address: m.address, Voter: counts}) == nil
		})
	}
	for _, m := range []*member{b, c} {
		m.start()
		add(m, true)
	}
	b.stop()
	d.start()
	add(d, true)
	asked("c is taken out", func(_ *Lead, r *Replica) bool { return r.Leader() != "c" && r.Remove("c") == nil })
	c.stop()
	for _, f := range []string{"log", "store", "store" + store.MarkSuffix} {
		if err := os.RemoveAll(filepath.Join(c.dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	asked("something is stored", func(l *Lead, _ *Replica) bool { return l.Store.Commit([]state.Record{jobRecord(0)}) == nil })
	add(c, false)
	l, _ := leader(t, a, d)
	if err := MakeDir(filepath.Join(c.dir, "log"), l.r.Agreed()); err != nil {
		t.Fatal(err)
	}
	a.stop()
	d.stop()
	c.start()
	b.start()
	was := b.r.raft.CurrentTerm()
	until(t, "b has stood twice", func() bool { return b.r.Leading() || b.r.raft.CurrentTerm() >= was+2 })
	if b.r.Leading() || c.r.Leading() {
		t.Fatal("one leads that lacks what was agreed on")
	}
	a.start()
	d.start()
	leader(t, a, d)
	for _, m := range []*member{b, c} {
		until(t, m.name+" has what was agreed on", func() bool { return m.has(1) == 1 })
	}
}
