package control

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// A node says what happened to it together with the end of the job that met it. It
// is drained in the same step, so that the job starts elsewhere, at once and
// without a retry of its own; and once for each fault, whoever resumes it.
func TestFaultsDrain(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"n1", "n2"} {
		w.node(name, 2, gpus{}, "i")
	}
	spec := &job.Spec{Name: "t", Gbatch: &job.Gbatch{Retry: &job.Retry{Limit: 1}}}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	first := w.c.jobs.get(1).Attempt.Ranks[0].Alloc.Node
	other := map[string]string{"n1": "n2", "n2": "n1"}[first]
	fault := node.Fault{Seq: 4, Text: "prolog /etc/p failed"}
	said := NodeSync{Name: first, Instance: "i", Hash: w.c.nodes.get(first).Hash, Faults: []node.Fault{fault}, Ranks: []node.RankStatus{{
		ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseEnded, Exit: &node.Exit{Code: 125, Reason: job.Server, Message: fault.Text}}}}
	w.apply(said)
	w.schedule()
	j := w.c.jobs.get(1)
	if j.Attempt == nil || j.Attempt.Ranks[0].Alloc.Node != other || j.Retried == nil || j.Retried.Failures != 0 {
		t.Errorf("the job is %s at %+v, retried %+v", j.State, j.Attempt, j.Retried)
	}
	is := func(what, reason string, noted uint64) {
		t.Helper()
		for range 2 {
			n := w.c.nodes.get(first)
			if n.Drained != reason || n.Faults != noted {
				t.Errorf("%s: drained for %q, noted %d", what, n.Drained, n.Faults)
			}
			w.restart()
		}
	}
	is("told", "prolog /etc/p failed (gnoded)", 4)
	w.apply(said)
	is("told again", "prolog /etc/p failed (gnoded)", 4)
	w.apply(Drain{Node: first})
	w.apply(said)
	is("told again after it was resumed", "", 4)
	w.apply(Drain{Node: first, Reason: "fan", By: "ann"})
	said.Faults = append(said.Faults, node.Fault{Seq: 5, Text: "epilog /etc/e failed"})
	w.apply(said)
	is("another one", "fan (ann); epilog /etc/e failed (gnoded)", 5)
	w.apply(Drain{Node: first})
	said.Instance, said.Faults, said.Ranks = "i2", []node.Fault{{Seq: 1, Text: "of another directory"}}, nil
	w.apply(said)
	is("installed anew", "of another directory (gnoded)", 1)
}
