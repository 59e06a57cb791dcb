package sched

import (
	"fmt"
	"maps"
	"slices"
)

// SetPolicy replaces the policy as a whole, or not at all.
func (s *State) SetPolicy(p Policy) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("set policy: %w", err)
	}
	s.policy = p.clone()
	s.policyChanged()
	return nil
}

// Policy is a copy of the policy in force.
func (s *State) Policy() Policy { return s.policy.clone() }

func (p Policy) clone() Policy {
	p.QOS, p.Users, p.Projects = maps.Clone(p.QOS), maps.Clone(p.Users), maps.Clone(p.Projects)
	p.Values, p.Mix = maps.Clone(p.Values), slices.Clone(p.Mix)
	return p
}

// timed says whether some limit counts GPU-minutes.
func (p *Policy) timed() bool {
	all := []Limits{p.User, p.Project}
	for _, l := range p.Users { // any of them: order does not matter
		all = append(all, l)
	}
	for _, l := range p.Projects {
		all = append(all, l)
	}
	for _, q := range p.QOS {
		all = append(all, q.Limits, q.PerUser)
	}
	return slices.ContainsFunc(all, func(l Limits) bool { return l.GPUMinutes > 0 })
}

// policyChanged brings what depends on the policy up to date.
func (s *State) policyChanged() {
	if len(s.policy.Mix) > 0 || len(s.mix) > 0 {
		for _, m := range s.mix {
			if m.named {
				s.index.Unref(m.Shape)
			}
		}
		s.mix = nil
	}
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
	s.timed = s.policy.timed()
}
