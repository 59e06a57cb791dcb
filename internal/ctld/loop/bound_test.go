package loop

import (
	"log/slog"
	"strings"
	"testing"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestAuditIsBounded: of very many entries the newest are kept.
func TestAuditIsBounded(t *testing.T) {
	st, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	l := &Loop{store: st, log: slog.New(slog.DiscardHandler), audited: maxAudit + pruneEvery - 2}
	commit := func(r state.Record) {
		t.Helper()
		if err := st.Commit([]state.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	entries := func() (n int) {
		t.Helper()
		err := st.Newest(state.KindAudit, func(state.Record) (bool, error) { n++; return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	commit(state.Record{Kind: state.KindAudit, Seq: 5, Value: []byte(`{"seq":5}`)})
	commit(l.record(&Note{}, "ok"))
	if n := entries(); n != 2 {
		t.Errorf("%d entries, want the old one and the new", n)
	}
	commit(l.record(&Note{}, "ok"))
	if n := entries(); n != 2 {
		t.Errorf("%d entries, want the two new ones", n)
	}
	if got := shorten(strings.Repeat("x", maxChange) + "y"); len(got) > maxChange+len("…") {
		t.Errorf("a long text is kept with %d bytes", len(got))
	}
}
