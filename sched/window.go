package sched

import "fmt"

// Window is an advance reservation: nodes, or a number of them, that are kept
// for some jobs or for nobody during a span of time. A job may use it if it
// names it in Job.Reservations, or by its project or user. It unlocks and
// never restricts: such a job may run elsewhere too.
type Window struct {
	Name        string   `json:"name"`
	Start       Time     `json:"start"`
	End         Time     `json:"end"`
	Nodes       []string `json:"nodes,omitempty"` // these nodes
	Count       int      `json:"count,omitempty"` // or so many whole nodes that match Match, chosen by Reserve
	Match       Shape    `json:"match"`           // constraints on the nodes of Count
	Projects    []string `json:"projects,omitempty"`
	Users       []string `json:"users,omitempty"`
	Maintenance bool     `json:"maintenance,omitempty"` // nobody may use it
	Reason      string   `json:"reason,omitempty"`
}

// Validate reports what makes the window unusable. A window that has ended is
// no error: it keeps nobody off anything.
func (w *Window) Validate() error {
	switch {
	case w.Name == "":
		return fmt.Errorf("window: name is empty")
	case w.Start < 0 || w.End > maxTime:
		return fmt.Errorf("window %q: lasts from %d to %d: want Unix milliseconds, 0 or more", w.Name, w.Start, w.End)
	case w.Start >= w.End:
		return fmt.Errorf("window %q: lasts from %d to %d: want an end after the start", w.Name, w.Start, w.End)
	case (len(w.Nodes) > 0) == (w.Count > 0):
		return fmt.Errorf("window %q: want either nodes or a count of nodes above 0", w.Name)
	}
	if err := w.Match.Validate(); err != nil {
		return fmt.Errorf("window %q: match: %w", w.Name, err)
	}
	return nil
}
