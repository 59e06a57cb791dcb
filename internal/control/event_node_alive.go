package control

import (
	"gbatch/internal/control/fit"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// NodeAlive says that a node was heard. What it said of its ranks is not taken in yet, as there is no room to record what
// would follow: it is kept, so that it counts also where the node is lost by then. Nothing of it is stored.
type NodeAlive struct {
	Name, Instance, Boot string
	Ranks                []node.RankStatus
}

func (e NodeAlive) apply(s *step) (none, *state.Refusal) {
	old := s.nodes.get(e.Name)
	if old == nil || old.Instance != e.Instance { // one with an empty state directory is another one: its first sync says so
		return none{}, s.nodes.noNode(e.Name)
	}
	if why := s.cfg.patience().OtherMachine(s.now, old, e.Boot, false); why != "" {
		return none{}, &state.Refusal{Code: state.Conflict, Message: fit.NotTheNode(e.Name, why)}
	}
	if old.Boot != "" && e.Boot != "" && old.Boot != e.Boot { // see fit.Older: it is told nothing before
		return none{}, &state.Refusal{Code: state.Conflict, Message: "node " + e.Name + " was restarted, and there is no room to record that", Hint: "make room on the controller's disk: the node is taken in then"}
	}
	n := *old
	n.LastSeen, n.Heard, n.Suspect, n.Kept = s.now, s.now, false, e.Ranks
	s.nodes.set(n)
	return none{}, nil
}

// There is a note on when nodes were heard, where one is due.
func (c *Controller) There(now sched.Time) (r state.Record, due bool) {
	if !c.nodes.there.Due(now, &c.nodes.list) {
		return r, false
	}
	return state.Record{Kind: state.KindThere, Value: state.Encode(&c.nodes.there)}, true
}

func (NodeAlive) audit(none) Audit { return Audit{Nothing: true} }
