package control

import (
	"gbatch/internal/state"
)

// Reconfigure replaces the site's rules, whole or not at all.
type Reconfigure struct{ Config Config }

func (e Reconfigure) apply(s *step) (none, *state.Refusal) {
	old := *s.cfg
	set := func(cfg Config) error {
		if err := s.queue.sched.SetPolicy(cfg.Policy); err != nil {
			return err
		}
		return s.ledger.SetConfig(cfg.Accounting)
	}
	if err := set(e.Config); err != nil {
		must(set(old)) // it was in force
		return none{}, &state.Refusal{Code: state.Conflict, Message: err.Error(), Hint: "the old rules stay in force"}
	}
	must(s.ledger.Rebase(s.jobs.charges())) // charges come from allocations, which are in bounds
	*s.cfg, s.queue.due = e.Config, true
	s.ledger.ForgetShares()
	for n := range s.nodes.list.All() {
		v := *n
		v.Partitions = s.cfg.Partitions.Of(n)
		s.nodes.set(v)
	}
	return none{}, nil
}

// audit is empty: who sends it has said what is new.
func (Reconfigure) audit(none) Audit { return Audit{} }
