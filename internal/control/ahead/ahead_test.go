package ahead

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestPlanned: what starts soon is planned for its nodes, each job once.
func TestPlanned(t *testing.T) {
	on := func(names ...string) (ranks []sched.Allocation) {
		for _, n := range names {
			ranks = append(ranks, sched.Allocation{Node: n})
		}
		return ranks
	}
	got := Planned(1000, []sched.Reservation{
		{Job: 1, At: 2000, Ranks: on("n1", "n1", "n2")}, {Job: 2, At: 1000 + horizon, Ranks: on("n1")}, {Job: 3, At: 1001 + horizon, Ranks: on("n2")},
	})
	if diff := cmp.Diff(map[string][]job.Number{"n1": {1, 2}, "n2": {1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOf: nodes for which something is or was planned come by name, once, as they are then; one that has gone does not.
func TestOf(t *testing.T) {
	list := state.NodesOf(&state.Node{Name: "n1"}, &state.Node{Name: "n2"}, &state.Node{Name: "n3"}, &state.Node{Name: "n4"})
	before, planned := map[string][]job.Number{"n4": {1}, "gone": {1}, "n1": {2}}, map[string][]job.Number{"n2": {3}, "n4": {1}}
	var got []string
	for n := range Of(&list, before, planned) {
		if n != list.Get(n.Name) {
			t.Errorf("%s is not as it is now", n.Name)
		}
		got = append(got, n.Name)
		list.Put(&state.Node{Name: "n4"})
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n4"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := range Of(&list, before, planned) {
		if n.Name != "n1" {
			t.Error("it goes on")
		}
		break
	}
}

// TestNext: a node keeps what is still planned, and is asked for no more than the
// bound.
func TestNext(t *testing.T) {
	asked := []state.Prepull{{Job: 1, Answered: true}, {Job: 2}}
	for name, tc := range map[string]struct {
		asked          []state.Prepull
		planned        []job.Number
		want           []state.Prepull
		changed, fresh bool
	}{
		"nothing":       {nil, nil, nil, false, false},
		"new":           {nil, []job.Number{4}, []state.Prepull{{Job: 4}}, true, true},
		"as before":     {asked, []job.Number{2, 1}, asked, false, false},
		"full":          {asked, []job.Number{3, 1, 2}, asked, false, false},
		"one gone":      {asked, []job.Number{1}, asked[:1], true, false},
		"one for other": {asked, []job.Number{1, 5, 6}, []state.Prepull{{Job: 1, Answered: true}, {Job: 5}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, fresh := Next(tc.asked, tc.planned)
			if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed || fresh != tc.fresh {
				t.Errorf("(-want +got):\n%s\nchanged %t, fresh %t", diff, changed, fresh)
			}
		})
	}
}

// TestText: what cost nothing is worth no word.
func TestText(t *testing.T) {
	for want, d := range map[string]node.Prepulled{
		"": {PullMS: 2},
		"image is on n1 ahead of the start, after 8.4s":                   {PullMS: 8400},
		"image could not be pulled on n1 ahead of the start: no such tag": {PullMS: 1, Error: "no such tag"},
	} {
		if got := Text("n1", d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
