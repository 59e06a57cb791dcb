package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestDraining: a node that is taken out while jobs are there is drained when they have
// left, and each is said once.
func TestDraining(t *testing.T) {
	n := &state.Node{Name: "n1", Said: 1, Jobs: []job.Number{1}}
	var got []string
	set := func(change func(*state.Node)) {
		next := *n
		change(&next)
		for _, c := range Changes(n, &next, 1000, "op") {
			got = append(got, c.Text)
			next.Past = append(next.Past, c)
		}
		n = &next
	}
	set(func(n *state.Node) { n.Drained = "fan" })
	set(func(*state.Node) {})
	set(func(n *state.Node) { n.Jobs = nil })
	set(func(*state.Node) {})
	set(func(n *state.Node) { n.Drained = "" })
	set(func(n *state.Node) { n.Drained = "fan again" })
	set(func(*state.Node) {})
	if diff := cmp.Diff([]string{"draining", "drained", "resumed", "drained"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
