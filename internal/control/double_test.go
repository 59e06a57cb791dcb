package control

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestDouble: a machine with the state directory of a node that is another one is
// refused while the node may run, whichever of the two speaks first; the node goes on and its
// past tells of the other. A restart of the machine, with its ranks, is let in.
func TestDouble(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i")
	said := NodeSync{Name: "n1", Instance: "i", Boot: "one", Hash: w.c.nodes.get("n1").Hash}
	w.apply(said)
	spec := &job.Spec{Name: "t"}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	run := node.RankStatus{ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseRunning}
	said.Ranks = []node.RankStatus{run}
	w.apply(said)

	other := NodeSync{Name: "n1", Instance: "i", Boot: "two", Hash: said.Hash, From: "10.0.0.9"}
	refused := func(when, want string) {
		t.Helper()
		if why := w.apply(other).(syncAnswer).Double; !strings.Contains(why, "this is not the machine that is node n1") || !strings.Contains(why, want) {
			t.Errorf("%s: %q", when, why)
		}
		if j := w.c.jobs.get(1); j.State != job.Running {
			t.Fatalf("%s: the job is %s: %s", when, j.State, j.Text)
		}
	}
	refused("at once", "knows nothing")
	w.now += w.cfg.SuspectTime - 1
	refused("later", "knows nothing")
	w.apply(said)
	w.apply(said)
	told := 0
	for _, c := range w.c.nodes.get("n1").Past {
		if c.Text == "another machine says that it is n1, with boot id two, at 10.0.0.9: a copy of its disk? It is refused" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times in %+v", told, w.c.nodes.get("n1").Past)
	}
	if _, ok := applyTo(w, NodeAlive{Name: "n1", Instance: "i", Boot: "two"}).(*state.Refusal); !ok {
		t.Error("it keeps the node alive while the disk is full")
	}
	before := w.now
	w.now += w.cfg.SuspectTime
	if _, ok := applyTo(w, NodeAlive{Name: "n1", Instance: "i", Boot: "two"}).(*state.Refusal); !ok {
		t.Error("a restart that cannot be recorded is told what to run while the disk is full")
	}
	w.now = before

	other.Ranks = said.Ranks // restarted
	refused("with its ranks", "restarted")
	w.now += w.cfg.SuspectTime / 2
	if why := w.apply(other).(syncAnswer).Double; why != "" {
		t.Errorf("restarted: %s", why)
	}
	if b := w.c.nodes.get("n1").Boot; b != "two" {
		t.Errorf("boot %s", b)
	}
	other, other.Boot = said, "one"
	refused("the other way round", "restarted")
}

// TestDoubleAlone: a machine with an older disk of a node, which does not know the job that runs on there without contact, is
// not let in before an operator gives that up, and is told so.
func TestDoubleAlone(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i")
	said := NodeSync{Name: "n1", Instance: "i", Boot: "one", Hash: w.c.nodes.get("n1").Hash}
	w.apply(said)
	spec := &job.Spec{Name: "t", Gbatch: &job.Gbatch{QOS: "alone"}}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	said.Ranks = []node.RankStatus{{ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseRunning}}
	w.apply(said)

	w.now += 2 * w.cfg.NodeTimeout
	w.apply(Tick{})
	said.Boot, said.Ranks = "two", nil
	if why := w.apply(said).(syncAnswer).Double; !strings.Contains(why, "may run a job on without contact") || !strings.HasSuffix(why, "by `gadm forget --give-up-jobs n1`") {
		t.Errorf("it is told %q", why)
	}
	if j := w.c.jobs.get(1); j.State != job.Running {
		t.Fatalf("the job is %s: %s", j.State, j.Text)
	}
	w.apply(Forget{Node: "n1", By: "root", GiveUpJobs: true})
	if j := w.c.jobs.get(1); j.State != job.Failed || j.Reason != job.NodeFail {
		t.Errorf("given up, the job is %s %s", j.State, j.Reason)
	}
	inventory := node.Inventory{Hostname: "n1", CPUs: 4, MemBytes: 64 << 30}
	said.Inventory = &inventory
	if a := w.apply(said).(syncAnswer); a.Double != "" || w.c.nodes.get("n1") == nil {
		t.Errorf("then it is told %+v", a)
	}
}

// TestForgotten: a rank that began and that its node does not know any more, though it
// has acted on the orders for it, is over.
func TestForgotten(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i")
	spec := &job.Spec{Name: "t"}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	n := w.c.nodes.get("n1")
	said := NodeSync{Name: "n1", Instance: "i", Hash: n.Hash, Seen: n.Version, Ranks: []node.RankStatus{{ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseRunning}}}
	w.apply(said)
	said.Ranks, said.Seen = nil, n.Version-1
	w.apply(said)
	if j := w.c.jobs.get(1); j.State != job.Running {
		t.Fatalf("by an older word the job is %s", j.State)
	}
	said.Seen = w.c.nodes.get("n1").Version
	w.apply(said)
	if j := w.c.jobs.get(1); j.State != job.Failed || j.Reason != job.NodeFail || !strings.Contains(j.Text, "does not know it any more") {
		t.Errorf("the job is %s %s: %s", j.State, j.Reason, j.Text)
	}
}

// TestToldAgain: a node that was not told of all gets a desired set of a new version, whatever
// else it says.
func TestToldAgain(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i")
	said := NodeSync{Name: "n1", Instance: "i", Hash: w.c.nodes.get("n1").Hash}
	before := w.c.nodes.get("n1").Version
	if w.apply(said); w.c.nodes.get("n1").Version != before {
		t.Error("a report without a change changes the version")
	}
	said.Again = true
	if w.apply(said); w.c.nodes.get("n1").Version <= before {
		t.Error("the version is the same")
	}
}

// TestOlderDisk: what a node was given and does not list after a restart did not begin, unless its disk is of an older state:
// then nobody can tell.
func TestOlderDisk(t *testing.T) {
	const told = 1000 * sched.Second
	for name, tc := range map[string]struct {
		said, knows, later sched.Time
		lists, restarted   bool
		want               job.State
	}{
		"its disk is as new":               {said: told, knows: told, want: job.Assigned},
		"its disk had not been written":    {said: told, knows: told - sched.Minute, want: job.Assigned},
		"of an older image":                {said: told, knows: told - sched.Minute - 1, want: job.Failed},
		"nothing on it":                    {said: told, want: job.Failed},
		"it was never told anything":       {want: job.Assigned},
		"of one before it said more":       {said: told, later: told + 2*sched.Minute, knows: told, want: job.Failed},
		"of an older image, and it has it": {said: told, lists: true, want: job.Assigned},
		"another controller leads":         {said: told, restarted: true, want: job.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("n1", 4, gpus{}, "i")
			said := NodeSync{Name: "n1", Instance: "i", Boot: "one", Hash: w.c.nodes.get("n1").Hash, Knows: tc.said}
			w.apply(said)
			spec := &job.Spec{Name: "t"}
			spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
			w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
			w.schedule()
			if tc.later > 0 {
				said.Knows = tc.later
				w.apply(said)
			}
			if tc.restarted {
				w.restart()
			}
			w.now += w.cfg.SuspectTime
			said.Boot, said.Knows = "two", tc.knows
			if tc.lists {
				said.Ranks = []node.RankStatus{{ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseAccepted}}
			}
			if why := w.apply(said).(syncAnswer).Double; why != "" {
				t.Fatal(why)
			}
			if j := w.c.jobs.get(1); j.State != tc.want || j.State == job.Failed && !strings.Contains(j.Text, "an older state of its disk") {
				t.Errorf("the job is %s %s: %s; want %s", j.State, j.Reason, j.Text, tc.want)
			}
		})
	}
}

// TestKnewBeforeTold: by which answer a node's disk is known is recorded with what the node is to be told of or has not begun, so that an image
// of before is found to be an older one.
func TestKnewBeforeTold(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i")
	said := NodeSync{Name: "n1", Instance: "i", Boot: "one", Hash: w.c.nodes.get("n1").Hash}
	w.apply(said) // its disk knows of no answer
	spec := &job.Spec{Name: "t"}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	for i := range 2 {
		w.apply(Submit{UUID: [16]byte{byte(i + 1)}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	w.schedule()
	knew := func(n job.Number) sched.Time { return w.c.jobs.get(n).Attempt.Ranks[0].Knew }
	answer := w.now
	w.now += w.cfg.SuspectTime
	said.Knows, said.Ranks = answer-1, []node.RankStatus{{ID: w.c.jobs.get(2).RankID(0), Phase: node.PhaseRunning}}
	if w.apply(said); knew(1) != 0 {
		t.Errorf("by an answer of long ago it is %d", knew(1))
	}
	said.Knows = answer
	w.apply(said)
	w.restart()
	if knew(1) != answer || knew(2) != 0 {
		t.Errorf("it is %d and of what runs %d; want %d and 0", knew(1), knew(2), answer)
	}
	w.now += sched.Second
	said.Knows = w.now
	if w.apply(said); knew(1) != w.now {
		t.Errorf("when that was long ago it is %d, want %d", knew(1), w.now)
	}
	w.now += w.cfg.SuspectTime
	said.Boot, said.Knows = "two", 0
	w.apply(said)
	if j := w.c.jobs.get(1); j.State != job.Failed || !strings.Contains(j.Text, "an older state of its disk") {
		t.Errorf("after an image with nothing on it the job is %s: %s", j.State, j.Text)
	}
}
