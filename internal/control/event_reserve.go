package control

import (
	"fmt"
	"time"

	"gbatch/internal/control/partition"
	"gbatch/internal/control/recur"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Reserve keeps nodes, or some of their GPUs, for some jobs or for nobody, during
// a span of time. GPUs may be named as Drain names them if they are of one node.
// One of the same name is replaced and keeps its ID.
type Reserve struct {
	Window    sched.Window
	Partition string         // whose nodes it is to have; see partition.Fill
	Every     *state.Every   // nil: it comes once; else from its start on, each time for so long
	Zone      *time.Location // of Every
}

// maxWindows bounds the reservations, since each is looked at for each node.
const maxWindows = 1000

func (e Reserve) apply(s *step) (none, *state.Refusal) {
	if e.Window.End <= s.now {
		return none{}, &state.Refusal{Code: state.Conflict, Path: "end", Message: fmt.Sprintf("reservation %q would end in the past", e.Window.Name)}
	}
	for _, name := range e.Window.Nodes {
		if s.nodes.get(name) == nil {
			refusal := s.nodes.noNode(name)
			refusal.Path = "nodes"
			return none{}, refusal
		}
	}
	w := state.Window{Window: e.Window, Every: e.Every}
	refusal := partition.Fill(&w.Window, e.Partition, &s.nodes.list)
	if refusal == nil {
		refusal = recur.GPUs(&w.Window, s.nodes.get)
	}
	if refusal == nil && w.Every != nil {
		w, refusal = recur.First(w, e.Zone)
	}
	if refusal != nil {
		return none{}, refusal
	}
	if _, there := s.queue.sched.Window(e.Window.Name); !there && len(s.queue.windows) >= maxWindows {
		return none{}, &state.Refusal{Code: state.OverLimit, Message: fmt.Sprintf("there are %d reservations, the most that there can be", maxWindows), Hint: "drop some that are not needed: gadm unreserve"}
	}
	if err := s.queue.reserve(w); err != nil {
		return none{}, &state.Refusal{Code: state.Conflict, Message: err.Error()}
	}
	return none{}, nil
}

func (e Reserve) audit(none) Audit {
	return Audit{Object: "reservation " + e.Window.Name, Change: recur.Text(e.Window, e.Every)}
}
