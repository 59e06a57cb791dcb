package control

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// prepulls is what a node was told to pull ahead, and whether by a message of
// its own.
func (w *world) prepulls(name string) string {
	var b strings.Builder
	for _, p := range w.c.View(w.now).Node(name).Prepulls {
		fmt.Fprintf(&b, "job %d told=%t\n", p.Job, p.Answered)
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

// prepulled is the node's word, twice, and what was made of it.
func (w *world) prepulled(name string, n job.Number, failed string) string {
	v := w.c.nodes.get(name)
	var b strings.Builder
	for range 2 {
		_, _, e := Apply(w.c, w.now, NodeSync{Name: name, Instance: v.Instance, Hash: v.Hash, Prepulled: []node.Prepulled{{Job: n, PullMS: 8400, Error: failed}}})
		w.store(e)
		for _, r := range e.Records {
			if r.Kind == state.KindEvent {
				fmt.Fprintf(&b, "%s\n", r.Value)
			}
		}
		fmt.Fprintf(&b, "counted %d\n", len(e.Prepulled))
	}
	return b.String()
}
