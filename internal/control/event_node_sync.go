package control

import (
	"fmt"

	"gbatch/internal/control/fit"
	"gbatch/internal/control/idle"
	"gbatch/internal/control/reboot"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// NodeSync is a node's word: who it is and every rank that it holds.
type NodeSync struct {
	Name, Instance, Boot string
	Hash                 string          // of its inventory
	Inventory            *node.Inventory // nil: as Hash says
	Unhealthy            []string
	Faults               []node.Fault // for which the node is to be drained; said until noted
	Checked              bool         // all checks of the machine have passed since its daemon began
	Reboot               *node.Reboot // what it says of the order that it was given
	Ranks                []node.RankStatus
	Loads                []idle.Load // of its GPUs that tell
	Prepulled            []node.Prepulled

	// Ahead says that the node was told of records that are not there: they went
	// back to an older state. Next is then the number that the next job would have
	// had.
	Ahead bool
	Next  job.Number

	Knows sched.Time // when the node was last answered, as its disk tells; 0: it does not
	Seen  uint64     // the version of the desired set that the node has
	Again bool       // that one lacked something, so the node is to be told once more
	From  string     // where it calls from, for people
}

// syncAnswer answers NodeSync. The desired set is in the View.
type syncAnswer struct {
	WantInventory bool   // the hash is not that of the inventory known
	Refused       string // why the inventory is not taken, but the one before it; empty: it is
	WentBack      bool   // by this it was found out that the records went back
	Double        string // why this is not believed to be the node; its word counts for nothing then
}

func (e NodeSync) apply(s *step) (syncAnswer, *state.Refusal) {
	if why := e.double(s); why != "" {
		return syncAnswer{Double: why}, nil
	}
	s.attempts.kept(e.Name)
	answer := syncAnswer{WentBack: e.wentBack(s)}
	old := s.nodes.get(e.Name)
	if old == nil {
		if e.Inventory == nil {
			answer.WantInventory = true
			return answer, nil
		}
		if why := fit.Unusable(e.Name, e.Inventory); why != "" {
			return answer, &state.Refusal{Code: state.Conflict, Message: "node " + e.Name + " is not taken in: " + why, Hint: "see `gnoded check` on the node"}
		}
		old = &state.Node{Name: e.Name, Instance: e.Instance, Version: s.nodes.version(), Unsure: len(e.Ranks) > 0}
	}
	if old.Instance != e.Instance {
		s.attempts.lose(e.Name, fmt.Sprintf("node %s failed: its node came back with an empty state directory", e.Name), func(_ *state.Job, r state.Rank) bool { return r.Instance != e.Instance })
		old = s.nodes.get(e.Name)
	} else if old.Boot != e.Boot && old.Boot != "" && e.Boot != "" {
		e.older(s)
		old = s.nodes.get(e.Name)
	}
	n := *old
	s.nodes.before, n.Said = n.Said, s.now
	n.DrainFor(e.Instance, e.Faults)
	s.nodes.booted = 0
	if n.Boot != e.Boot && n.Boot != "" && e.Boot != "" {
		s.nodes.booted = s.cfg.patience().Over(s.now, &n)
	}
	n.Instance, n.Boot, n.LastSeen, n.Heard = e.Instance, e.Boot, s.now, s.now
	n.Knows, n.Suspect, n.Lost, n.Double = e.Knows, false, false, ""
	n.Unhealthy = e.Unhealthy
	fit.Take(&n, e.Hash, e.Inventory)
	s.nodes.set(reboot.Said(n, e.Reboot, e.Checked))
	if old.Lost {
		s.attempts.alone(e.Name, "", e.Name+" answers again")
	}
	e.prepulled(s)
	s.attempts.reports(e.Name, e.Ranks)
	e.knew(s)
	e.reconcile(s)
	e.forgotten(s)
	e.loads(s)
	if e.Again {
		s.nodes.wake(e.Name)
	}
	answer.WantInventory, answer.Refused = n.Hash != e.Hash && n.Refused.Hash != e.Hash, n.Refused.Why
	return answer, nil
}

// audit is empty: what nodes report is in the jobs' timelines.
func (NodeSync) audit(syncAnswer) Audit { return Audit{Nothing: true} }
