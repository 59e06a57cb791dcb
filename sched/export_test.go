package sched

import "slices"

// What tests ask of a State besides.

// ReasonOf is why a waiting job does not start, as the plan has it.
func (s *State) ReasonOf(p *Plan, id JobID) Reason {
	ref, ok := s.Ref(id)
	if !ok {
		return Reason{Code: "Unknown", Text: "it does not wait"}
	}
	return p.ReasonFor(id, ref)
}

// Node is a copy of what is known of a node, and whether it is known.
func (s *State) Node(name string) (Node, bool) {
	n := s.index.Nodes[name]
	if n == nil || n.Gone {
		return Node{}, false
	}
	out := n.Node
	out.GPUs, out.Features = slices.Clone(out.GPUs), slices.Clone(out.Features)
	return out, true
}

// Policy is a copy of the policy in force.
func (s *State) Policy() Policy { return s.policy.Clone() }
