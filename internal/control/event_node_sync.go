package control

import (
	"fmt"

	"gbatch/internal/node"
	"gbatch/internal/state"
)

// NodeSync is a node's word: who it is and every rank that it holds.
type NodeSync struct {
	Name, Instance, Boot string
	Hash                 string          // of its inventory
	Inventory            *node.Inventory // nil: as Hash says
	Unhealthy            []string
	Ranks                []node.RankStatus
	Loads                []GPULoad // of its GPUs that tell
	Prepulled            []node.Prepulled
}

// syncAnswer answers NodeSync. The desired set is in the View.
type syncAnswer struct {
	WantInventory bool // the hash is not that of the inventory known
}

func (e NodeSync) apply(s *step) (syncAnswer, *state.Refusal) {
	if e.Inventory != nil {
		probe := schedNode(&state.Node{Name: e.Name, Inventory: state.Inventory{Inventory: *e.Inventory}})
		if err := probe.Validate(); err != nil {
			return syncAnswer{}, &state.Refusal{Code: state.Conflict, Message: "the node's inventory cannot be used: " + err.Error(), Hint: "see `gnoded check` on the node"}
		}
	}
	old := s.nodes.get(e.Name)
	if old == nil {
		if e.Inventory == nil {
			return syncAnswer{WantInventory: true}, nil
		}
		old = &state.Node{Name: e.Name, Instance: e.Instance, Version: s.nodes.version(), Unsure: len(e.Ranks) > 0}
	}
	if old.Instance != e.Instance {
		s.attempts.lose(e.Name, fmt.Sprintf("node %s failed: its node came back with an empty state directory", e.Name), func(r state.Rank) bool { return r.Instance != e.Instance })
		old = s.nodes.get(e.Name)
	}
	n := *old
	n.Instance, n.Boot, n.LastSeen = e.Instance, e.Boot, s.now
	n.Suspect, n.Lost = false, false
	n.Unhealthy = e.Unhealthy
	if e.Inventory != nil {
		n.Inventory, n.Hash = state.Inventory{Inventory: *e.Inventory}, e.Hash
	}
	s.nodes.set(n)
	e.prepulled(s)
	for _, st := range e.Ranks {
		s.attempts.report(e.Name, st)
	}
	e.reconcile(s)
	e.loads(s)
	return syncAnswer{WantInventory: n.Hash != e.Hash}, nil
}

// audit is empty: what nodes report is in the jobs' timelines.
func (NodeSync) audit(syncAnswer) Audit { return Audit{Nothing: true} }
