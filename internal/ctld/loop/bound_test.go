package loop

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// TestAuditIsBounded: of very many entries the newest are kept.
func TestAuditIsBounded(t *testing.T) {
	st, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	l := &Loop{store: st, log: slog.New(slog.DiscardHandler), now: sched.Day, audit: audit{last: map[state.Kind]uint64{state.KindAudit: maxAudit + pruneEvery - 2}}}
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

// TestOneAuthorLeavesTheAuditLogToOthers: however much one user changes, what
// others did is found, and so is the newest of theirs; after a restart too.
func TestOneAuthorLeavesTheAuditLogToOthers(t *testing.T) {
	st, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	l := &Loop{store: st, log: slog.New(slog.DiscardHandler), now: sched.Day}
	if err := l.audit.open(st); err != nil {
		t.Fatal(err)
	}
	write := func(user string, n int) {
		t.Helper()
		var rs []state.Record
		for range n {
			rs = append(rs, l.record(&Note{api.AuditEntry{User: user}}, "ok"))
		}
		if err := st.Commit(rs); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (by map[string]int) {
		t.Helper()
		by = map[string]int{}
		for _, kind := range state.AuditKinds {
			err := st.Newest(kind, func(r state.Record) (bool, error) {
				var e api.AuditEntry
				err := json.Unmarshal(r.Value, &e)
				by[string(kind)+" "+e.User]++
				return true, err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return by
	}
	write("bob", 3)
	write("eve", 3*perAuthor)
	if diff := cmp.Diff(map[string]int{"l bob": 3, "l eve": perAuthor, "z eve": 2 * perAuthor}, count()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	last := l.audit.seq
	l = &Loop{store: st, log: slog.New(slog.DiscardHandler), now: sched.Day}
	if err := l.audit.open(st); err != nil || l.audit.seq != last {
		t.Fatalf("after a restart the last entry is %d, want %d (%v)", l.audit.seq, last, err)
	}
	l.audit.last[state.KindBusy] = maxAudit + 5*pruneEvery // as if there were so many
	write("eve", perAuthor+2*pruneEvery)
	if diff := cmp.Diff(map[string]int{"l bob": 3, "l eve": 2 * perAuthor, "z eve": 2 * pruneEvery}, count()); diff != "" {
		t.Errorf("entries when there are too many (-want +got):\n%s", diff)
	}
}
