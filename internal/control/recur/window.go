package recur

import (
	"fmt"
	"strings"
	"time"

	"gbatch/internal/state"
	"gbatch/sched"
)

// GPUs makes UUIDs of a window's GPUs.
func GPUs(w *sched.Window, nodes func(name string) *state.Node) *state.Refusal {
	if len(w.GPUs) == 0 {
		return nil
	}
	if len(w.Nodes) != 1 {
		return &state.Refusal{Code: state.Conflict, Path: "gpus", Message: fmt.Sprintf("reservation %q names GPUs of %d nodes", w.Name, len(w.Nodes)),
			Hint: "name the one node that they are on, or say how many GPUs of each node"}
	}
	n, gpus := nodes(w.Nodes[0]), []string(nil)
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

// Text says what a reservation is, for the audit log.
func Text(w sched.Window, every *state.Every) string {
	at := func(t sched.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }
	text := fmt.Sprintf("from %s until %s, nodes %s", at(w.Start), at(w.End), strings.Join(w.Nodes, ","))
	if every != nil {
		text += fmt.Sprintf(", again at %s, %s", every.Cron, every.Zone)
	}
	return text
}
