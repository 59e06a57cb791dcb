// Package reboot says how far a node is that an operator has rebooted: it is empty
// first, then told, then silent, and back when it says that its checks have passed.
// It is pure.
package reboot

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Order has a node rebooted that is drained for it, by an order of the number seq. What
// it was drained for before, was, it is drained for again when it is back.
func Order(n state.Node, seq uint64, by, was string) state.Node {
	if n.Reboot != nil && n.Reboot.Why == n.Drained && !n.Reboot.Overdue() {
		return n // the same request, sent again
	}
	if n.Reboot != nil && was == n.Reboot.Why {
		was = n.Reboot.Was // an order that takes the place of another
	}
	n.Reboot = &state.Reboot{Seq: seq, By: by, Why: n.Drained, Was: was}
	return n
}

// Cancel takes an order back.
func Cancel(n state.Node) state.Node {
	if n.Drained == n.Reboot.Why {
		n.Drained = n.Reboot.Was
	}
	n.Reboot = nil
	return n
}

// Step takes in that time has passed or that a job has left: a node that is empty is
// told, and one that does not come back for longer than patience is late. It says
// whether the node is another one then.
func Step(n *state.Node, now, patience sched.Time) (state.Node, bool) {
	v := *n
	if n.Reboot == nil {
		return v, false
	}
	r := *n.Reboot
	switch {
	case r.Sent == 0 && len(n.Jobs) == 0:
		r.Sent, r.Boot = now, n.Boot
	case r.Sent > 0 && r.Late == "" && now >= r.Sent+patience:
		r.Late = "it has not come back for " + job.Duration(patience/sched.Second).String()
	default:
		return v, false
	}
	v.Reboot = &r
	return v, true
}

// Next is when Step makes something else of a node by time alone; 0: nothing.
func Next(n *state.Node, patience sched.Time) sched.Time {
	if n.Reboot == nil || n.Reboot.Sent == 0 || n.Reboot.Late != "" {
		return 0
	}
	return n.Reboot.Sent + patience
}

// Said takes in a node's word: that its order failed, or that it was booted anew and,
// checked, found fit. Then it takes jobs again, if nothing else was found meanwhile for
// which it is drained.
func Said(n state.Node, said *node.Reboot, checked bool) state.Node {
	r := n.Reboot
	switch {
	case r == nil || r.Sent == 0:
	case n.Boot != r.Boot && checked && len(n.Unhealthy) == 0:
		return Cancel(n)
	case said != nil && said.Seq == r.Seq && said.Failed != r.Failed:
		v := *r
		v.Failed = said.Failed
		n.Reboot = &v
	}
	return n
}
