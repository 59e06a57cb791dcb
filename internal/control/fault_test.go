package control

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
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

// 100 faults of nodes befall jobs that may fail but once, while the controller is
// restarted now and then: programs of the site's that fail, machines and GPUs that
// turn out to be unfit. No job's retry is used, none is sent to a node that is out, and
// all end well.
func TestHundredFaultsUseNoRetry(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("GBATCH_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GBATCH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	names := []string{"n1", "n2", "n3", "n4"}
	for _, name := range names {
		w.node(name, 8, gpus{}, "i")
	}
	const jobs = 150
	for i := range jobs {
		spec := &job.Spec{Name: "t", Gbatch: &job.Gbatch{Retry: &job.Retry{Limit: 1}}}
		spec.Request.Resources = job.Resources{CPUs: 2, CPUMemoryGB: 1}
		if r, refused := w.apply(Submit{UUID: [16]byte{1, byte(i)}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")}).(*state.Refusal); refused {
			t.Fatal(r)
		}
	}
	unfit, seq, faults := map[string]bool{}, map[string]uint64{}, 0
	// say is a node's word: its health, its ranks, and how one of them ended.
	say := func(name string, exit *node.Exit, faults ...node.Fault) {
		s := NodeSync{Name: name, Instance: "i", Hash: w.c.nodes.get(name).Hash, Faults: faults}
		if unfit[name] {
			s.Unhealthy = []string{"health program /h: exit code 1"}
		}
		for _, n := range w.c.nodes.get(name).Jobs {
			st := node.RankStatus{ID: w.c.jobs.get(n).RankID(0), Phase: node.PhaseStarting}
			if exit != nil {
				st.Phase, st.Exit, exit = node.PhaseEnded, exit, nil
			}
			s.Ranks = append(s.Ranks, st)
		}
		w.apply(s)
	}
	left := func() (n int) {
		for i := job.Number(1); i <= jobs; i++ {
			if j := w.past(i); j != nil && j.State != job.Finished {
				n++
			}
		}
		return n
	}
	for steps := 0; faults < 100 || left() > 0; steps++ {
		if steps > 20_000 {
			t.Fatalf("after %d faults %d jobs are left, as %+v", faults, left(), w.past(jobs))
		}
		for _, name := range names {
			say(name, nil)
		}
		w.wait("20")
		for _, name := range names {
			v := w.c.nodes.get(name)
			if out := v.Drained != "" || len(v.Unhealthy) > 0; out && len(v.Jobs) > 0 {
				t.Fatalf("%s is out and has jobs %v", name, v.Jobs)
			}
		}
		name := names[rng.IntN(len(names))]
		v := w.c.nodes.get(name)
		switch kind := rng.IntN(6); {
		case v.Drained != "":
			w.apply(Drain{Node: name})
		case unfit[name]:
			unfit[name] = false
		case len(v.Jobs) == 0:
		case faults >= 100 || kind < 2:
			say(name, &node.Exit{StartedMS: int64(w.now) - 10, EndedMS: int64(w.now)})
		case kind < 4:
			faults++
			seq[name]++
			for len(w.c.nodes.get(name).Jobs) > 0 {
				say(name, &node.Exit{Code: 125, Reason: job.Server}, node.Fault{Seq: seq[name], Text: "prolog /p failed"})
			}
		default:
			faults++
			unfit[name] = true
			for len(w.c.nodes.get(name).Jobs) > 0 {
				say(name, &node.Exit{Code: 125, Reason: job.Server})
			}
		}
		if rng.IntN(20) == 0 {
			w.restart()
			for _, name := range names {
				say(name, nil)
			}
		}
	}
	for n := job.Number(1); n <= jobs; n++ {
		if j := w.past(n); j == nil || j.State != job.Finished || j.Retried != nil && j.Retried.Failures > 0 {
			t.Errorf("job %d: %+v", n, j)
		}
	}
}
