package replica

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestBegunAnew: a member whose disk was emptied, or on which a backup was restored, and which begins by
// itself without being added again, takes nothing from the others: what they have from before they were several
// would be missing in it. They go on without it.
func TestBegunAnew(t *testing.T) {
	const before = 20
	for name, restored := range map[string]int{"emptied": 0, "restored": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, c := newMember(t, "a"), newMember(t, "b").joins(), newMember(t, "c").joins()
			a.alone(before)
			a.start()
			defer func() { a.stop() }()
			_, lead := leader(t, a)
			for _, m := range []*member{b, c} {
				m.start()
				defer func() { m.stop() }()
				takesPart(t, m, a, b, c)
			}
			until(t, "the records of before on b", func() bool { return b.has(before) == before })
			b.stop()
			for _, f := range []string{"log", "store", "store" + store.MarkSuffix} {
				if err := os.RemoveAll(filepath.Join(b.dir, f)); err != nil {
					t.Fatal(err)
				}
			}
			b.alone(restored)
			b.nowMS += 3600_000
			b.start()
			until(t, "b follows one of the others", func() bool { l := b.r.Leader(); return l == "a" || l == "c" })
			for n := before; n < before+10; {
				if err := lead.Store.Commit([]state.Record{jobRecord(n)}); err != nil {
					_, lead = leader(t, a, c) // b has come to a later term
					continue
				}
				n++
			}
			for _, m := range []*member{a, c} {
				until(t, "all records on "+m.name, func() bool { return m.has(before+10) == before+10 })
			}
			if got := b.has(before + 10); got != restored {
				t.Errorf("b has %d records, and began with %d", got, restored)
			}
			if at, all := b.r.Applied(), a.r.Applied(); at == 0 || at >= all {
				t.Errorf("b says that it has come to %d, where the others are at %d", at, all)
			}
		})
	}
}

// TestNameUnknown: where the name of one member cannot be looked up, the others go on without it, and it gets
// all that it missed when it can.
func TestNameUnknown(t *testing.T) {
	t.Parallel()
	a, b, c := newMember(t, "a"), newMember(t, "b").joins(), newMember(t, "c").joins()
	a.start()
	defer func() { a.stop() }()
	_, lead := leader(t, a)
	for _, m := range []*member{b, c} {
		m.start()
		defer func() { m.stop() }()
		if m == c {
			a.unknown.Store(&c.address)
			b.unknown.Store(&c.address)
		}
		if err := a.r.Add(Member{Name: m.name, Address: m.address, Voter: true}); err != nil {
			t.Fatal(err)
		}
		until(t, "a record after "+m.name+" was added", func() bool {
			if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err == nil {
				return true
			}
			_, lead = leader(t, a, b)
			return false
		})
	}
	until(t, "the record on b", func() bool { return b.has(1) == 1 })
	if got := c.has(1); got != 0 {
		t.Error("c has what nobody could send to it")
	}
	a.unknown.Store(nil)
	b.unknown.Store(nil)
	until(t, "the record on c", func() bool { return c.has(1) == 1 })
}

// alone stores records on a member that is a controller alone; none: it has no store.
func (m *member) alone(n int) {
	m.t.Helper()
	if n == 0 {
		return
	}
	st, err := store.Open(store.Config{Dir: filepath.Join(m.dir, "store")})
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range n {
		if err := st.Commit([]state.Record{jobRecord(i)}); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		m.t.Fatal(err)
	}
}
