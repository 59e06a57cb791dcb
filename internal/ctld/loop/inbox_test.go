package loop

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestInboxTurns: while one user has the inbox full, what others send is in the
// next turn, and the last one of that user is told that there is too much. Where nothing is left nothing is said to wait.
func TestInboxTurns(t *testing.T) {
	b := newInbox()
	flood := make(chan error, inboxSize)
	for range inboxSize {
		b.put("ann", 1, request{reply: flood})
	}
	b.put("bob", costOf(control.Submit{}), request{records: named("bob's")})
	b.put("node n1", costOf(control.NodeSync{}), request{records: named("n1's")})
	if len(flood) != 2 || !errors.Is(<-flood, ErrBusy) {
		t.Errorf("%d of the one who has the most were refused, want 2", len(flood))
	}
	got := map[string]int{}
	for _, r := range b.take() {
		name := ""
		for _, r := range r.records {
			name = r.Name
		}
		got[name]++
	}
	if diff := cmp.Diff(map[string]int{"": userShare, "bob's": 1, "n1's": 1}, got); diff != "" {
		t.Errorf("the next turn (-want +got):\n%s", diff)
	}
	select {
	case <-b.more:
	default:
		t.Error("nothing says that more waits")
	}
	b.put("bob", 1, request{})
	for len(b.take()) > 0 {
	}
	select {
	case <-b.more:
		t.Error("it is said that more waits, and nothing does: there would be another turn")
	default:
	}
}

func named(name string) []state.Record { return []state.Record{{Name: name}} }

// TestCosts: a mass cancel is dearer than a submission.
func TestCosts(t *testing.T) {
	if one, many := costOf(control.Submit{}), costOf(control.Act{Numbers: make([]job.Number, 500)}); one != 1 || many < 20 {
		t.Errorf("a submission costs %d, a cancel of 500 jobs %d", one, many)
	}
}
