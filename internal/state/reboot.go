package state

import (
	"strings"

	"gbatch/sched"
)

// Reboot is an operator's order to reboot a node. Immutable.
type Reboot struct {
	Seq    uint64     `json:"seq"` // by which the node tells it from others
	By     string     `json:"by"`
	Why    string     `json:"why"`              // what the node was drained for with it
	Was    string     `json:"was,omitempty"`    // what it was drained for before, and is again afterwards
	Sent   sched.Time `json:"sent,omitempty"`   // when it was empty and was to be told; 0: jobs are there
	Boot   string     `json:"boot,omitempty"`   // of the machine then: with another one it was rebooted
	Late   string     `json:"late,omitempty"`   // it should be back by now
	Failed string     `json:"failed,omitempty"` // the node's word that it cannot
}

// underWay says that a node's silence is what was asked of it.
func (r *Reboot) underWay() bool {
	return r != nil && r.Sent > 0 && r.Late == "" && r.Failed == ""
}

// Overdue says that a node that was to be rebooted should be back, or cannot.
func (r *Reboot) Overdue() bool { return r != nil && (r.Late != "" || r.Failed != "") }

// Stage is how far it has come, in a word: pending, sent, late, failed; empty: there is
// no order.
func (r *Reboot) Stage() string {
	switch {
	case r == nil:
		return ""
	case r.Failed != "":
		return "failed"
	case r.Late != "":
		return "late"
	case r.Sent > 0:
		return "sent"
	}
	return "pending"
}

// OrdersReboot is the number of the order that the node shall follow; 0: none, or it has.
func (n *Node) OrdersReboot() uint64 {
	if n.Reboot == nil || n.Reboot.Sent == 0 || n.Reboot.Boot != n.Boot {
		return 0
	}
	return n.Reboot.Seq
}

// rebootWords are what is said of the order beside what the node is drained for.
func (n *Node) rebootWords() string {
	switch r := n.Reboot; {
	case r.Sent > 0 && n.Boot != r.Boot:
		return strings.TrimSuffix("it was rebooted, and its checks have yet to pass: "+strings.Join(n.Unhealthy, "; "), ": ")
	case r.Failed != "":
		return "its reboot failed: " + r.Failed
	case r.Late != "":
		return "it was told to reboot, and " + r.Late
	case r.Sent > 0:
		return "it is being rebooted"
	}
	return "it is rebooted when it is empty"
}

// drainedFor is what a node is drained for.
func (n *Node) drainedFor() string {
	if n.Reboot == nil {
		return n.Drained
	}
	return n.Drained + "; " + n.rebootWords()
}

// silence is why nothing is heard of a node.
func (n *Node) silence() string {
	if n.Reboot == nil || n.Reboot.Sent == 0 {
		return "no contact"
	}
	return "no contact; " + n.rebootWords()
}
