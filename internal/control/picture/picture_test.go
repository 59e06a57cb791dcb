package picture

import (
	"testing"

	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestNode: what speaks against a node or a GPU takes it out of scheduling, and a
// decision may turn out differently then.
func TestNode(t *testing.T) {
	up := state.Node{Name: "n1", Inventory: state.Inventory{Inventory: node.Inventory{CPUs: 2, GPUs: []node.GPU{{UUID: "a"}}}}}
	for name, tc := range map[string]struct {
		edit    func(*state.Node)
		want    sched.NodeState
		gpu     bool // is out of service
		differs bool
	}{
		"up":          {func(*state.Node) {}, sched.Up, false, false},
		"seen again":  {func(n *state.Node) { n.LastSeen, n.Version = 5, 6 }, sched.Up, false, false},
		"suspect":     {func(n *state.Node) { n.Suspect = true }, sched.Down, false, true},
		"lost":        {func(n *state.Node) { n.Suspect, n.Lost = true, true }, sched.Down, false, true},
		"drained":     {func(n *state.Node) { n.Drained = "fan" }, sched.Drained, false, true},
		"penalized":   {func(n *state.Node) { n.Trouble = &state.Trouble{Until: 9} }, sched.Drained, false, true},
		"unhealthy":   {func(n *state.Node) { n.Unhealthy = []string{"disk"} }, sched.Drained, false, true},
		"GPU drained": {func(n *state.Node) { n.DrainedGPUs = map[string]string{"a": "fan"} }, sched.Up, true, true},
		"more cores":  {func(n *state.Node) { n.Hash = "other" }, sched.Up, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := up
			tc.edit(&n)
			got := Node(&n)
			if got.State != tc.want || got.GPUs[0].Drained != tc.gpu || Differs(&up, &n) != tc.differs {
				t.Errorf("state %v, GPU out %t, differs %t", got.State, got.GPUs[0].Drained, Differs(&up, &n))
			}
		})
	}
}
