package control

import (
	"fmt"
	"slices"

	"gbatch/internal/state"
)

// Forget drops a node that is gone for good.
type Forget struct{ Node string }

func (e Forget) apply(c *step) (None, *state.Refusal) {
	i, ok := c.findNode(e.Node)
	if !ok {
		return None{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no node %q", e.Node), Hint: "nodes here: " + c.nodeNames()}
	}
	n := c.nodes[i]
	if len(n.Jobs) > 0 || !n.Lost {
		return None{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is in contact or has %d jobs", n.Name, len(n.Jobs)),
			Hint: "stop its gnoded and wait until ginfo shows it as lost"}
	}
	c.sched.RemoveNode(n.Name)
	c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	c.record(state.Record{Kind: state.KindNode, Name: n.Name})
	c.dirty = true
	return None{}, nil
}

func (e Forget) audit(None) Audit { return Audit{Object: "node " + e.Node, Change: "forgotten"} }
