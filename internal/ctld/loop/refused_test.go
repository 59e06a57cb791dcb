package loop

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/sched"
)

func attempt(user string, n int) api.AuditEntry {
	return api.AuditEntry{User: user, Role: "user", Action: fmt.Sprint("GET /v1/jobs/", n, "/log"), Result: "denied: no"}
}

// TestRefusals: the first of its kind is told at once, repetitions are counted and
// told when the period is over, and after it all begins anew.
func TestRefusals(t *testing.T) {
	var r refusals
	const began = 5 * sched.Minute
	if got := r.due(began, false); got != nil {
		t.Errorf("of nothing came %v", got)
	}
	counted := func(user string, n, count int) api.AuditEntry {
		e := attempt(user, n)
		e.Count = count
		return e
	}
	for i, step := range []struct {
		after sched.Time
		add   []api.AuditEntry
		last  bool
		want  []api.AuditEntry
	}{
		{0, []api.AuditEntry{attempt("eve", 1), attempt("eve", 1), attempt("bob", 1)}, false, []api.AuditEntry{counted("bob", 1, 1), counted("eve", 1, 2)}},
		{1000, []api.AuditEntry{attempt("eve", 1), attempt("eve", 2)}, false, []api.AuditEntry{counted("eve", 2, 1)}},
		{refusedEvery - 1, []api.AuditEntry{attempt("eve", 1)}, false, nil},
		{refusedEvery, nil, false, []api.AuditEntry{counted("eve", 1, 2)}},
		{refusedEvery + 1, []api.AuditEntry{attempt("eve", 1)}, false, []api.AuditEntry{counted("eve", 1, 1)}},
		{refusedEvery + 2, []api.AuditEntry{attempt("eve", 1)}, true, []api.AuditEntry{counted("eve", 1, 1)}},
		{refusedEvery + 3, nil, true, nil},
	} {
		for _, e := range step.add {
			r.add(e)
		}
		if diff := cmp.Diff(step.want, r.due(began+step.after, step.last)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestRefusalsAreBounded: whatever is asked by however many, a period has few
// entries, one user cannot take all, and every attempt is in the numbers.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	entries, attempts, asked := map[string]int{}, 0, 0
	take := func(list []api.AuditEntry) {
		for _, e := range list {
			entries[e.User]++
			attempts += e.Count
		}
	}
	for round := range 50 {
		for n := range 100 {
			r.add(attempt("eve", 100*round+n))
			asked++
		}
		take(r.due(sched.Minute+sched.Time(round), false))
	}
	if entries["eve"] > maxRefusedOf+1 {
		t.Errorf("one user has %d entries", entries["eve"])
	}
	r.add(attempt("bob", 1))
	for n := range 1000 {
		r.add(attempt(fmt.Sprint("user", n), n))
	}
	asked += 1001
	take(r.due(sched.Minute+60, false))
	if entries["bob"] != 1 {
		t.Error("another user's attempt is not told because of the first user's")
	}
	take(r.due(2*sched.Minute, false))
	total := 0
	for _, n := range entries {
		total += n
	}
	if total > 2*(maxRefused+2) || attempts != asked {
		t.Errorf("%d attempts are %d entries that tell of %d", asked, total, attempts)
	}
}
