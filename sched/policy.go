package sched

import "fmt"

// SetPolicy replaces the policy as a whole, or not at all.
func (s *State) SetPolicy(p Policy) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("set policy: %w", err)
	}
	s.policy = p.Clone()
	s.policyChanged()
	return nil
}

// policyChanged brings what depends on the policy up to date.
func (s *State) policyChanged() {
	s.mix.Drop(s.index)
	clear(s.tallies)
	for key, account := range s.accounts { // each by itself: order does not matter
		account.tallies = s.accountTallies(key)
	}
	for _, extra := range s.extras {
		if extra.extraKey.bucket != "" {
			extra.bucket = s.tally(tallyKey{kind: ofBucket, name: extra.extraKey.bucket})
		}
	}
	s.eachClass(func(c *class) {
		c.eachTally(func(t *tally) { t.waiting += c.live })
	})
	for _, run := range s.running {
		s.charge(run, +1)
	}
	s.index.SetValues(s.policy.Values)
	s.rejoin()
	s.timed = s.policy.Timed()
}
