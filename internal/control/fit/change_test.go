package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestChanges: each change is told once, with what it was; what only looks like one
// is not: figures of a reason, a restart of the controller, a node that is heard again
// as it was.
func TestChanges(t *testing.T) {
	const now = 1000 * sched.Second
	past := func(state_, reason string) []state.NodeChange {
		return []state.NodeChange{{At: now - 120*sched.Second, State: state_, Reason: reason}}
	}
	gpu := func(unhealthy string) state.Inventory {
		return state.Inventory{Inventory: node.Inventory{CPUs: 4, GPUs: []node.GPU{{UUID: "a", Unhealthy: unhealthy}}}}
	}
	up := state.Node{Name: "n1", Instance: "i", Boot: "b", Said: now, LastSeen: now, Past: past("up", ""), Inventory: gpu("")}
	was := func(edit func(*state.Node)) *state.Node {
		n := up
		edit(&n)
		return &n
	}
	same := was(func(*state.Node) {})
	for name, tc := range map[string]struct {
		old, n *state.Node
		want   []string
	}{
		"joined":    {nil, same, []string{"joined, with 1 GPU and 4 cores"}},
		"as it was": {same, same, nil},
		"suspect":   {same, was(func(n *state.Node) { n.Suspect, n.LastSeen = true, now-30*sched.Second }), []string{"suspect: no contact for 30 seconds"}},
		"lost": {same, was(func(n *state.Node) {
			n.Past, n.Lost, n.LastSeen = past("suspect", "no contact"), true, now-120*sched.Second
		}), []string{"lost: no contact for 2 minutes"}},
		"lost still":        {same, was(func(n *state.Node) { n.Past, n.Lost = past("lost", "no contact"), true }), nil},
		"back":              {same, was(func(n *state.Node) { n.Past = past("lost", "no contact") }), []string{"back after 2 minutes"}},
		"back, drained":     {same, was(func(n *state.Node) { n.Past, n.Drained = past("lost", "no contact"), "fan" }), []string{"back after 2 minutes, drained"}},
		"not heard yet":     {same, was(func(n *state.Node) { n.Past, n.Said = past("lost", "no contact"), 0 }), nil},
		"drained":           {same, was(func(n *state.Node) { n.Drained = "fan (op)" }), []string{"drained"}},
		"for another fault": {same, was(func(n *state.Node) { n.Drained, n.Past = "fan (op)", past("drained", "disk (op)") }), []string{"drained"}},
		"resumed":           {same, was(func(n *state.Node) { n.Past = past("drained", "fan (op)") }), []string{"resumed"}},
		"full disk":         {same, was(func(n *state.Node) { n.Unhealthy = []string{"disk is full: 1.2 GiB left"} }), []string{"unhealthy"}},
		"fuller": {same, was(func(n *state.Node) {
			n.Unhealthy, n.Past = []string{"disk is full: 0.9 GiB left"}, past("unhealthy", "disk is full: 1.2 GiB left")
		}), nil},
		"and another thing": {same, was(func(n *state.Node) {
			n.Unhealthy, n.Past = []string{"disk is full: 0.9 GiB left", "clock"}, past("unhealthy", "disk is full: 1.2 GiB left")
		}), []string{"unhealthy"}},
		"fit again":      {same, was(func(n *state.Node) { n.Past = past("unhealthy", "disk") }), []string{"fit for jobs again"}},
		"rebooted":       {same, was(func(n *state.Node) { n.Boot = "c" }), []string{"was rebooted"}},
		"installed anew": {same, was(func(n *state.Node) { n.Boot, n.Instance = "c", "j" }), []string{"came back with an empty state directory"}},
		"a copy":         {was(func(n *state.Node) { n.Double = "with boot id c" }), same, []string{"another machine says that it is n1, with boot id c: a copy of its disk? It is refused"}},
		"a copy, said": {was(func(n *state.Node) { n.Double = "with boot id c" }), was(func(n *state.Node) {
			n.Past = append(past("up", ""), state.NodeChange{At: now - sched.Minute, State: "up", Text: "another machine says that it is n1, with boot id c: a copy of its disk? It is refused"})
		}), nil},
		"no copy":   {was(func(n *state.Node) { n.Double = "with boot id c" }), was(func(n *state.Node) { n.Boot = "c" }), []string{"was rebooted"}},
		"GPU":       {same, was(func(n *state.Node) { n.Inventory = gpu("XID 79") }), []string{"GPU 0 (a) is out of service: XID 79"}},
		"GPU again": {was(func(n *state.Node) { n.Inventory = gpu("XID 79") }), same, []string{"GPU 0 (a) is in service again"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Changes(tc.old, tc.n, now, "") {
				got = append(got, c.Text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
