package control

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestSealedShared: what is sealed is stored once, for all jobs that a document
// becomes, and is deleted when the last of them is over.
func TestSealedShared(t *testing.T) {
	type step func(w *world)
	run := func(n job.Number) step {
		return func(w *world) {
			w.schedule()
			w.status("", node.RankStatus{ID: job.RankID{Job: n}, Phase: node.PhaseRunning})
		}
	}
	end := func(n job.Number, reason job.Reason) step {
		return func(w *world) {
			w.status("", node.RankStatus{ID: job.RankID{Job: n}, Phase: node.PhaseEnded, Exit: &node.Exit{Reason: reason, StartedMS: 1}})
		}
	}
	act := func(a Action, n job.Number) step {
		return func(w *world) { w.apply(Act{Action: a, Numbers: []job.Number{n}, By: "ann"}) }
	}
	wait := func(text string) step { return func(w *world) { w.wait(text) } }
	for name, tc := range map[string]struct {
		g     job.Gbatch
		steps []step
		want  []bool // after each: whether it is stored
	}{
		"plain":    {job.Gbatch{}, []step{run(1), end(1, "")}, []bool{true, false}},
		"retry":    {job.Gbatch{Retry: &job.Retry{Limit: 1}}, []step{run(1), end(1, job.ExitCode), wait("60s"), end(1, job.ExitCode)}, []bool{true, true, true, false}},
		"halted":   {job.Gbatch{}, []step{run(1), act(Halt, 1), end(1, job.Preempted), run(2), end(2, "")}, []bool{true, true, true, true, false}},
		"array":    {job.Gbatch{Tasks: &job.Tasks{Indexes: "0-1"}}, []step{run(2), end(2, ""), run(3), end(3, "")}, []bool{true, true, true, false}},
		"cron":     {job.Gbatch{Cron: []string{"*/5 * * * *"}}, []step{wait("300s"), run(2), end(2, ""), wait("300s"), act(Cancel, 1), run(3), end(3, "")}, []bool{true, true, true, true, true, true, false}},
		"cron off": {job.Gbatch{Cron: []string{"*/5 * * * *"}}, []step{wait("300s"), run(2), end(2, ""), act(Cancel, 1)}, []bool{true, true, true, false}},
		"cron halted": {job.Gbatch{Cron: []string{"*/5 * * * *"}}, []step{wait("300s"), run(2), act(Halt, 2), act(Cancel, 1), end(2, job.Preempted), run(3), end(3, "")},
			[]bool{true, true, true, true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.NodeTimeout = sched.Day
			w.restart()
			w.node("n1", 2, gpus{}, "i1")
			g := tc.g
			spec := &job.Spec{Name: "a", Gbatch: &g}
			spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
			spec.Request.Scheduling.Restartable = name != "array"
			w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}"), Sealed: []byte("sealed"), Secrets: true})
			var got []bool
			for _, s := range tc.steps {
				w.node("n1", 2, gpus{}, "i1") // it is there
				s(w)
				_, there := w.stored[recordKey(state.Record{Kind: state.KindSecret, Job: 1})]
				got = append(got, there)
				w.restart()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, w.queue())
			}
			for k, r := range w.stored {
				if r.Kind == state.KindSecret {
					t.Errorf("left over: %s", k)
				}
			}
		})
	}
}

// TestTemplateSecrets: new values for a template reach the job that it made.
func TestTemplateSecrets(t *testing.T) {
	w := newWorld(t)
	spec := &job.Spec{Name: "a", Gbatch: &job.Gbatch{Cron: []string{"*/5 * * * *"}}}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}"), Sealed: []byte("sealed"), Secrets: true})
	w.wait("300s")
	set := func(n job.Number) string {
		a := w.apply(SetSecrets{Number: n, Base: 1, Sealed: []byte("new"), Names: []string{"A"}, By: "ann"})
		if r, refused := a.(*state.Refusal); refused {
			return r.Message + ": " + r.Hint
		}
		return fmt.Sprintf("%+v", a)
	}
	if diff := cmp.Diff("job 2 has the secrets of the template that made it: set those of job 1", set(2)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("{Done:true Version:2 State:QUEUED}", set(1)); diff != "" {
		t.Error(diff)
	}
	if got := w.c.jobs.get(2).Secrets; got != 2 {
		t.Errorf("the job that was made has version %d, want 2", got)
	}
}
