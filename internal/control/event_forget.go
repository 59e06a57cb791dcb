package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Forget drops a node that is gone for good.
type Forget struct{ Node string }

func (e Forget) apply(s *step) (none, *state.Refusal) {
	n := s.nodes.get(e.Node)
	if n == nil {
		return none{}, s.nodes.noNode(e.Node)
	}
	if len(n.Jobs) > 0 || !n.Lost {
		return none{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is in contact or has %d jobs", n.Name, len(n.Jobs)),
			Hint: "stop its gnoded and wait until ginfo shows it as lost"}
	}
	s.nodes.remove(n.Name)
	return none{}, nil
}

func (e Forget) audit(none) Audit { return Audit{Object: "node " + e.Node, Change: "forgotten"} }
