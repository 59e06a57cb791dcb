package control

import (
	"testing"

	"gbatch/internal/control/ledger"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// submitted is a world with a node and a job of one core that was assigned to it.
func assignedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i1")
	spec := &job.Spec{Name: "a"}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.now += sched.Second
	w.apply(Submit{UUID: [16]byte{1}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	if got := w.c.jobs.get(1).State; got != job.Assigned {
		t.Fatalf("the job is %s", got)
	}
	return w
}

// says has the node say of the job's rank, after some time.
func (w *world) says(after sched.Time, st node.RankStatus) {
	w.now += after
	n, j := w.c.nodes.get("n1"), w.c.jobs.get(1)
	st.ID, st.UUID = j.RankID(0), j.Identity()
	w.apply(NodeSync{Name: n.Name, Instance: n.Instance, Hash: n.Hash, Ranks: []node.RankStatus{st}})
}

// TestNeverTold: a job that was given to a node which had gone by then is queued
// again, as it did not run; one that the node may have been told of is not.
func TestNeverTold(t *testing.T) {
	for name, tc := range map[string]struct {
		told func(assigned sched.Time) sched.Time
		want job.State
	}{
		"never told":       {func(sched.Time) sched.Time { return 0 }, job.Queued},
		"told before":      {func(at sched.Time) sched.Time { return at - 1 }, job.Queued},
		"told in the turn": {func(at sched.Time) sched.Time { return at }, job.Failed},
		"told after":       {func(at sched.Time) sched.Time { return at + 1 }, job.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := assignedWorld(t)
			at := w.c.jobs.get(1).Attempt.Start
			w.now += w.cfg.NodeTimeout + sched.Second
			w.apply(Tick{Told: func(string) sched.Time { return tc.told(at) }})
			j := w.c.jobs.get(1)
			if j.State != tc.want {
				t.Errorf("it is %s (%s), want %s", j.State, j.Text, tc.want)
			}
			if j.Retried != nil && j.Retried.Failures > 0 {
				t.Errorf("%d failures were counted", j.Retried.Failures)
			}
		})
	}
	t.Run("of an earlier start", func(t *testing.T) {
		w := assignedWorld(t)
		w.now += sched.Second
		w.restart()
		w.now += w.cfg.NodeTimeout + sched.Second
		w.apply(Tick{Told: func(string) sched.Time { return 0 }})
		if got := w.c.jobs.get(1).State; got != job.Failed {
			t.Errorf("it is %s: an earlier start may have told the node", got)
		}
	})
}

// TestLateWord: what happened while no controller ran is billed and shown as of when
// it happened, by the node's word, and that is believed within bounds.
func TestLateWord(t *testing.T) {
	const s = sched.Second
	for name, tc := range map[string]struct {
		freed   sched.Time // after the begin, by the node
		restart bool
		want    sched.Time // after the begin
	}{
		"at once":                         {3595 * s, false, 3600 * s},
		"late, and no controller ran":     {2 * s, true, 2 * s},
		"before it began":                 {-1000 * s, true, 0},
		"a little before it began":        {-2 * s, true, 0},
		"after now":                       {9999 * s, true, 3600 * s},
		"not said":                        {-1 << 40, true, 3600 * s},
		"before the node was heard of it": {2 * s, false, 25 * s},
	} {
		t.Run(name, func(t *testing.T) {
			w := assignedWorld(t)
			began := w.now + 5*s // an end that the node puts between the order and this is not believed either
			w.says(5*s, node.RankStatus{Phase: node.PhaseRunning, StartedMS: int64(began)})
			w.says(25*s, node.RankStatus{Phase: node.PhaseRunning, StartedMS: int64(began)})
			w.now = began + 3600*s
			if tc.restart {
				w.restart()
			}
			freed := int64(began + tc.freed)
			w.says(0, node.RankStatus{Phase: node.PhaseEnded, Exit: &node.Exit{StartedMS: int64(began), EndedMS: freed, FreeMS: freed}})
			j := w.c.jobs.get(1)
			if j.State != job.Finished || j.Ended != began+tc.want || j.Last().End != j.Ended {
				t.Errorf("it is %s, ended %d ms after its begin, its attempt %d ms; want %d", j.State, j.Ended-began, j.Last().End-began, tc.want)
			}
			if used, want := j.Used, w.c.ledger.Held(ledger.Charges(j)...); used != want {
				t.Errorf("billed %v, want %v", used, want)
			}
		})
	}
}

// TestSaidOnFullDisk: what a node says while there is no room to record it counts as soon as there is, also where the node is lost, or is
// another machine, by then; what it says again changes nothing.
func TestSaidOnFullDisk(t *testing.T) {
	const s = sched.Second
	for name, then := range map[string]func(w *world){
		"it is lost": func(w *world) {
			w.now += w.cfg.NodeTimeout + s
			w.apply(Tick{})
		},
		"it is another machine": func(w *world) {
			w.now += 20 * s
			n := w.c.nodes.get("n1")
			w.apply(NodeSync{Name: "n1", Instance: "another", Hash: n.Hash})
		},
		"it says so again": func(w *world) {
			n := w.c.nodes.get("n1")
			w.now += s
			w.apply(NodeSync{Name: "n1", Instance: n.Instance, Hash: n.Hash, Ranks: n.Kept})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := assignedWorld(t)
			began := w.now + 5*s
			w.says(5*s, node.RankStatus{Phase: node.PhaseRunning, StartedMS: int64(began)})
			n, j := w.c.nodes.get("n1"), w.c.jobs.get(1)
			freed := began + 30*s
			for w.now = began + 40*s; w.now < began+600*s; w.now += 10 * s {
				_, _, eff := Apply(w.c, w.now, NodeAlive{Name: "n1", Instance: n.Instance, Ranks: []node.RankStatus{{ID: j.RankID(0), UUID: j.Identity(), Phase: node.PhaseEnded,
					Exit: &node.Exit{StartedMS: int64(began), EndedMS: int64(freed), FreeMS: int64(freed)}}}})
				if len(eff.Records) > 0 {
					t.Fatalf("%d records while there is no room", len(eff.Records))
				}
			}
			if got := w.c.jobs.get(1).State; got != job.Running {
				t.Fatalf("the job is %s while there is no room", got)
			}
			then(w)
			if j := w.c.jobs.get(1); j.State != job.Finished || j.Ended != freed || j.UsedRun != 30*s {
				t.Errorf("it is %s (%s), ended %d ms after its begin and counts for %d ms", j.State, j.Text, j.Ended-began, j.UsedRun)
			}
		})
	}
}

// TestRestarted: a machine that was restarted says of what ran on it when it is back, which had ended with its lease at the latest.
func TestRestarted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason job.Reason
		away   sched.Time
		want   sched.Time // of the time until its end
	}{
		"at once":          {job.NodeFail, 40 * sched.Second, 40 * sched.Second},
		"after its lease":  {job.NodeFail, 290 * sched.Second, 240 * sched.Second},
		"that it has said": {job.ExitCode, 290 * sched.Second, 290 * sched.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := assignedWorld(t)
			n, j := w.c.nodes.get("n1"), w.c.jobs.get(1)
			say := func(boot string, st node.RankStatus) {
				st.ID, st.UUID = j.RankID(0), j.Identity()
				w.apply(NodeSync{Name: "n1", Instance: n.Instance, Boot: boot, Hash: n.Hash, Ranks: []node.RankStatus{st}})
			}
			began := w.now
			say("a", node.RankStatus{Phase: node.PhaseRunning, StartedMS: int64(began)})
			w.now += tc.away
			say("b", node.RankStatus{Phase: node.PhaseEnded, Exit: &node.Exit{Code: 137, Reason: tc.reason, StartedMS: int64(began), EndedMS: int64(w.now)}})
			j = w.c.jobs.get(1)
			if j.State.Active() || j.Last().End-began != tc.want || j.UsedRun != tc.want {
				t.Errorf("it is %s and ended %d ms after its begin, of which %d count; want %d", j.State, j.Last().End-began, j.UsedRun, tc.want)
			}
		})
	}
}
