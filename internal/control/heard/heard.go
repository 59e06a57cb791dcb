// Package heard is what a controller notes of when it heard nodes. It is pure; the controller owns the one Note.
package heard

import (
	"slices"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Every is how often it is noted at least that a controller is there.
const Every = sched.Minute

// Note says that a controller is there, and which nodes it has not heard. When each node is heard is not stored: so that a
// start, and one of several controllers that takes over, does not take what ran on a node that was silent before to have
// run until then, this is. A node that is not in it was heard no later than Every after it.
type Note struct {
	At     sched.Time `json:"at"`
	Silent []Silent   `json:"silent,omitempty"` // nodes with jobs, by name

	looked sched.Time // whether another one is due
}

// Silent is a node that is not heard.
type Silent struct {
	Node  string     `json:"node"`
	Heard sched.Time `json:"heard"` // last, at the latest
}

// Due says whether the note is another one now and is to be stored: Every after the last one, or within a second when there is another node in
// it, or one less.
func (t *Note) Due(now sched.Time, nodes *state.Nodes) bool {
	if now < t.looked+sched.Second {
		return false
	}
	t.looked = now
	var list []Silent
	for n := range nodes.All() {
		if len(n.Jobs) > 0 && (n.Heard < n.LastSeen || now-n.Heard >= Every) {
			list = append(list, Silent{n.Name, n.Heard})
		}
	}
	if now < t.At+Every && slices.Equal(list, t.Silent) {
		return false
	}
	t.At, t.Silent = now, list
	return true
}

// Before is when a node was heard before a start now, at the latest, by the last note of an earlier one.
func (t *Note) Before(name string, now sched.Time) sched.Time {
	for _, s := range t.Silent {
		if s.Node == name {
			return min(s.Heard, now-1)
		}
	}
	if t.At == 0 { // nobody has noted it
		return now - 1
	}
	return min(t.At+Every, now-1)
}
