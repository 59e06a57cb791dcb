package control

import (
	"fmt"
	"strings"
	"time"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Reserve keeps nodes, or some of their GPUs, for some jobs or for nobody, during
// a span of time. GPUs may be named as Drain names them if they are of one node.
// One of the same name is replaced and keeps its ID.
type Reserve struct{ Window sched.Window }

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
	if refusal := e.findGPUs(s, &e.Window); refusal != nil {
		return none{}, refusal
	}
	if _, there := s.queue.sched.Window(e.Window.Name); !there && len(s.queue.windows) >= maxWindows {
		return none{}, &state.Refusal{Code: state.OverLimit, Message: fmt.Sprintf("there are %d reservations, the most that there can be", maxWindows), Hint: "drop some that are not needed: gadm unreserve"}
	}
	if err := s.queue.reserve(e.Window); err != nil {
		return none{}, &state.Refusal{Code: state.Conflict, Message: err.Error()}
	}
	return none{}, nil
}

func (e Reserve) audit(none) Audit {
	w := e.Window
	at := func(t sched.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }
	return Audit{Object: "reservation " + w.Name, Change: fmt.Sprintf("from %s until %s, nodes %s", at(w.Start), at(w.End), strings.Join(w.Nodes, ","))}
}

// findGPUs makes UUIDs of a window's GPUs.
func (e Reserve) findGPUs(s *step, w *sched.Window) *state.Refusal {
	if len(w.GPUs) == 0 {
		return nil
	}
	if len(w.Nodes) != 1 {
		return &state.Refusal{Code: state.Conflict, Path: "gpus", Message: fmt.Sprintf("reservation %q names GPUs of %d nodes", w.Name, len(w.Nodes)),
			Hint: "name the one node that they are on, or say how many GPUs of each node"}
	}
	n, gpus := s.nodes.get(w.Nodes[0]), []string(nil)
	for _, text := range w.GPUs {
		uuid, refusal := n.FindGPU(text)
		if refusal != nil {
			refusal.Path = "gpus"
			return refusal
		}
		gpus = append(gpus, uuid)
	}
	w.GPUs = gpus
	return nil
}
