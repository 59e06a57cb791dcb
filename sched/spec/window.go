package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Window is an advance reservation: nodes, or a number of them, or some of their
// GPUs, that are kept for some jobs or for nobody during a span of time. Jobs of
// its projects and users may use it; where it has neither, those that name it in
// Job.Reservations, by name or ID. It
// unlocks and never restricts: such a job may run elsewhere too. Where only GPUs
// are kept, the cores and memory beside them are anybody's.
type Window struct {
	Name        string   `json:"name"`
	ID          string   `json:"id,omitempty"` // a UUID, by which jobs may name it too
	Start       Time     `json:"start"`
	End         Time     `json:"end"`
	Nodes       []string `json:"nodes,omitempty"`       // these nodes
	Count       int      `json:"count,omitempty"`       // or so many nodes that match Match, chosen by Reserve
	GPUs        []string `json:"gpus,omitempty"`        // of Nodes only these, by UUID
	GPUsPerNode int      `json:"gpusPerNode,omitempty"` // or so many of each node, chosen by Reserve; 0: the whole nodes
	Match       Shape    `json:"match"`                 // constraints on the nodes of Count and the GPUs of GPUsPerNode
	Projects    []string `json:"projects,omitempty"`
	Users       []string `json:"users,omitempty"`
	Maintenance bool     `json:"maintenance,omitempty"` // nobody may use it
	Reason      string   `json:"reason,omitempty"`
	More        []Span   `json:"more,omitempty"` // later times of the same, each after the one before
}

// Span is a time from its start until before its end.
type Span struct {
	Start Time `json:"start"`
	End   Time `json:"end"`
}

// MaxSpans bounds the times of a window, since each is looked at for each node.
const MaxSpans = 32

// Spans is all times of the window, in order.
func (w *Window) Spans() []Span { return append([]Span{{w.Start, w.End}}, w.More...) }

// Next is the first of its times that is not over; the last if all are.
func (w *Window) Next(now Time) Span {
	all := w.Spans()
	for _, s := range all {
		if s.End > now {
			return s
		}
	}
	return all[len(all)-1]
}

// Validate reports what makes the window unusable. A window that has ended is
// no error: it keeps nobody off anything.
func (w *Window) Validate() error {
	switch {
	case w.Name == "":
		return fmt.Errorf("reservation: its name is empty")
	case len(w.More) >= MaxSpans:
		return fmt.Errorf("reservation %q: has %d times: want at most %d", w.Name, len(w.More)+1, MaxSpans)
	case (len(w.Nodes) > 0) == (w.Count > 0):
		return fmt.Errorf("reservation %q: want either nodes or a count of nodes above 0", w.Name)
	case w.GPUsPerNode < 0 || w.GPUsPerNode > MaxGPUs:
		return fmt.Errorf("reservation %q: wants %d GPUs of each node: want 1..%d, or none of it for whole nodes", w.Name, w.GPUsPerNode, MaxGPUs)
	case len(w.GPUs) > 0 && (w.GPUsPerNode > 0 || w.Count > 0):
		return fmt.Errorf("reservation %q: names GPUs: want the nodes that they are on, and no number of nodes or GPUs", w.Name)
	}
	last := Time(0)
	for _, s := range w.Spans() {
		switch {
		case s.Start < 0 || s.End > MaxTime:
			return fmt.Errorf("reservation %q: lasts from %d to %d: want Unix milliseconds, 0 or more", w.Name, s.Start, s.End)
		case s.Start >= s.End:
			return fmt.Errorf("reservation %q: lasts from %d to %d: want an end after the start", w.Name, s.Start, s.End)
		case s.Start < last:
			return fmt.Errorf("reservation %q: begins anew at %d, before it has ended at %d", w.Name, s.Start, last)
		}
		last = s.End
	}
	if err := w.Match.validate(); err != nil {
		return fmt.Errorf("reservation %q: match: %w", w.Name, err)
	}
	return nil
}

// Admits says whether a job of the project and user, which names these windows,
// may use it.
func (w *Window) Admits(project, user string, names []string) bool {
	if w.Maintenance {
		return false
	}
	if len(w.Projects)+len(w.Users) > 0 { // to know its name is no right then
		return slices.Contains(w.Projects, project) || slices.Contains(w.Users, user)
	}
	return slices.ContainsFunc(names, w.Named)
}

// Named says whether a text names the window.
func (w *Window) Named(text string) bool {
	return text == w.Name || w.ID != "" && strings.EqualFold(text, w.ID)
}
