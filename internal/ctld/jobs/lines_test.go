package jobs

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestSelected: who asks of a view what another one has asked for is told the same,
// and the jobs are not looked through again; but where the answer is by the rights of
// who asks, or has what ended, they are.
func TestSelected(t *testing.T) {
	o := &ordered{view: &state.View{}, byUser: map[string][]*state.Job{}, kept: map[filter]selection{}, ends: &ends{}}
	for n := range 4 {
		j := &state.Job{Number: job.Number(n + 1), State: job.Queued, Name: "x", Owner: &state.Owner{User: fmt.Sprint("user", n%2)}}
		o.live = append(o.live, j)
		o.byUser[j.Owner.User] = append(o.byUser[j.Owner.User], j)
	}
	open := func(*state.Owner) bool { return false }
	closed := func(*state.Owner) bool { return true }
	ask := func(f filter, private func(*state.Owner) bool) int {
		found, _ := o.selected(searchFor(&f, private))
		return len(found)
	}
	first := []int{ask(filter{Fold: true}, open), ask(filter{Fold: true, User: "user1"}, open), ask(filter{Name: "x"}, open), ask(filter{Name: "x"}, closed)}
	all := o.live
	o.live, o.byUser = all[:1], nil
	again := []int{ask(filter{Fold: true, Offset: 1, Limit: 2, MaxAge: 5}, closed), ask(filter{Fold: true, User: "user1"}, open), ask(filter{Name: "x"}, open), ask(filter{All: true, User: "user1"}, open)}
	if diff := cmp.Diff([][]int{{4, 2, 4, 0}, {4, 2, 1, 0}}, [][]int{first, again}); diff != "" {
		t.Errorf("how many are listed, and after the jobs were taken away (-want +got):\n%s", diff)
	}
	o.size = maxKept
	if ask(filter{Newest: true}, open); len(o.kept) != 2 {
		t.Errorf("%d selections are kept, of 2 that there is room for", len(o.kept))
	}
}
