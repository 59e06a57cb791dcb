package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Forget drops a node that is gone for good.
type Forget struct {
	Node, By   string
	GiveUpJobs bool // with those that run there without contact: somebody knows that they do not any more
}

func (e Forget) apply(s *step) (none, *state.Refusal) {
	n := s.nodes.get(e.Node)
	if n == nil {
		return none{}, s.nodes.noNode(e.Node)
	}
	if n.Lost && e.GiveUpJobs {
		s.attempts.lose(n.Name, fmt.Sprintf("node %s was given up for good", n.Name), func(*state.Job, state.Rank) bool { return true })
		n = s.nodes.get(e.Node)
	}
	if n.Lost && len(n.Jobs) > 0 {
		more := ""
		if len(n.Jobs) > 1 {
			more = fmt.Sprintf(" and %d more", len(n.Jobs)-1)
		}
		return none{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("%s may still run job %d%s without contact", n.Name, n.Jobs[0], more),
			Hint: "switch the machine off, then give them up by gadm forget --give-up-jobs"}
	}
	if !n.Lost {
		return none{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("node %s is not lost", n.Name),
			Hint: "stop its gnoded and wait until ginfo shows it as lost"}
	}
	s.nodes.by = e.By
	s.nodes.remove(n.Name)
	return none{}, nil
}

func (e Forget) audit(none) Audit { return Audit{Object: "node " + e.Node, Change: "forgotten"} }
