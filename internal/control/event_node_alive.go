package control

import "gbatch/internal/state"

// NodeAlive says that a node was heard and no more: what it said is not taken in,
// as there is no room to record what would follow. Nothing of it is stored.
type NodeAlive struct{ Name, Instance, Boot string }

func (e NodeAlive) apply(s *step) (none, *state.Refusal) {
	old := s.nodes.get(e.Name)
	if old == nil || old.Instance != e.Instance { // one with an empty state directory is another one: its first sync says so
		return none{}, s.nodes.noNode(e.Name)
	}
	if why := s.cfg.patience().OtherMachine(s.now, old, e.Boot, false); why != "" {
		return none{}, &state.Refusal{Code: state.Conflict, Message: otherMachine(e.Name, why)}
	}
	n := *old
	n.LastSeen, n.Suspect = s.now, false
	s.nodes.set(n)
	return none{}, nil
}

func (NodeAlive) audit(none) Audit { return Audit{Nothing: true} }
