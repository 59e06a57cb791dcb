package replica

import (
	"testing"

	"gbatch/internal/state"
)

// TestNewMemberIsElected: of four, one missed that the newest takes part, and one is lost for good. Of the three
// that are left only the newest has the last entry, and leads.
func TestNewMemberIsElected(t *testing.T) {
	t.Parallel()
	a, b, c, d, all := four(t)
	for _, m := range []*member{b, c} {
		m.start()
		takesPart(t, m, all...)
	}
	b.stop()
	d.start()
	takesPart(t, d, all...)
	var rest *member
	until(t, "d alone of those that are left has an entry", func() bool {
		for _, m := range []*member{a, c} {
			if m.r == nil {
				m.start()
			}
		}
		l, lead := leader(t, a, c, d)
		if rest = a; l == a {
			rest = c
		}
		had := rest.r.raft.LastIndex()
		rest.stop()
		_ = lead.Store.Commit([]state.Record{jobRecord(0)}) // nobody agrees
		for _, m := range []*member{a, c} {
			m.stop()
		}
		return d.r.raft.LastIndex() > had
	})
	b.start()
	rest.start()
	_, lead := leader(t, b, rest, d)
	if err := lead.Store.Commit([]state.Record{jobRecord(1)}); err != nil {
		t.Fatal(err)
	}
}
