package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Preemption ends only what may be ended, and the job that it is done for then
// starts within the grace.
func TestPreemptionPaysOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		p.QOS = map[string]QOS{"low": {}, "high": {Priority: 1000, Preempts: []string{"low"}}}
		w := newWorld(t, p)
		for range rapid.IntRange(1, 20).Draw(t, "jobs") {
			j := w.job()
			j.QOS = "low"
			j.Restartable = rapid.Bool().Draw(t, "restartable")
			j.MinRun = Time(rapid.IntRange(0, 10).Draw(t, "guaranteed")) * Minute
			j.Limit = 10 * Hour
			if err := w.s.Enqueue(j); err != nil {
				t.Fatal(err)
			}
		}
		first := Decide(w.input())
		w.apply(&first)
		w.now += Time(rapid.IntRange(0, 10).Draw(t, "minutes")) * Minute
		for range rapid.IntRange(1, 4).Draw(t, "high jobs") {
			j := w.job()
			j.QOS, j.Interactive, j.NotBefore, j.Limit = "high", false, 0, Minute
			if err := w.s.Enqueue(j); err != nil {
				t.Fatal(err)
			}
		}
		plan := Decide(w.input())
		if err := w.s.Check(); err != nil {
			t.Fatal(err)
		}
		soon := map[JobID]bool{}
		for _, r := range plan.Reservations {
			soon[r.Job] = r.At <= w.now+p.HaltGrace
		}
		seen := map[JobID]bool{}
		for _, h := range plan.Halts {
			run := w.s.running[h.Job]
			if run == nil || !run.Job.Restartable || run.Job.QOS != "low" || w.now-run.Start < run.Job.MinRun || run.Halting || seen[h.Job] {
				t.Fatalf("halt %+v of %+v", h, run)
			}
			if seen[h.Job] = true; !soon[h.For] {
				t.Fatalf("halt %+v, and job %d does not start soon", h, h.For)
			}
		}
		w.apply(&plan)
		again := Decide(w.input())
		for _, h := range again.Halts {
			if slices.ContainsFunc(plan.Halts, func(o Halt) bool { return o.For == h.For }) {
				t.Fatalf("a second halt %+v for the same job", h)
			}
		}
	})
}
