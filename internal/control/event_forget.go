package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Forget drops a node that is gone for good.
type Forget struct{ Node string }

func (e Forget) apply(c *step) (None, *state.Refusal) {
	n := c.node(e.Node)
	if n == nil {
		return None{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no node %q", e.Node), Hint: "nodes here: " + c.nodes.names()}
	}
	if len(n.Jobs) > 0 || !n.Lost {
		return None{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is in contact or has %d jobs", n.Name, len(n.Jobs)),
			Hint: "stop its gnoded and wait until ginfo shows it as lost"}
	}
	c.queue.sched.RemoveNode(n.Name)
	c.nodes.remove(n.Name)
	c.out.record(state.Record{Kind: state.KindNode, Name: n.Name})
	c.queue.due = true
	return None{}, nil
}

func (e Forget) audit(None) Audit { return Audit{Object: "node " + e.Node, Change: "forgotten"} }
