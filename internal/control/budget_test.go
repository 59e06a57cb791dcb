package control

import (
	"strings"
	"testing"
	"time"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/sched"
)

// TestMonthlyBudget: when a project's budget of the month is used, its jobs
// wait with a reason that has the numbers, and start by themselves when the
// month is new; what runs goes on.
func TestMonthlyBudget(t *testing.T) {
	w := newWorld(t)
	w.cfg.Accounting.Tree = accounting.Tree{"lab": {Shares: 1, Budget: 60, Monthly: true}, "vision": {Shares: 1, Parent: "lab"}}
	w.now = sched.Time(time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC).UnixMilli())
	w.restart()
	contact := func() { w.node("n1", 64, gpus{2, "H100"}, "i1") }
	contact()
	submit := func() Submitted {
		spec := &job.Spec{Name: "a"}
		spec.Request.Resources = job.Resources{CPUs: 1, GPUs: 1, CPUMemoryGB: 1}
		spec.Request.Scheduling.MaxDuration = 86400
		return w.apply(Submit{UUID: [16]byte{byte(w.c.jobs.next)}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")}).(Submitted)
	}
	if b := submit().Budget; b == nil || b.Percent() != 0 {
		t.Errorf("the budget before any use: %+v", b)
	}
	w.schedule()
	for range 16 { // of 4 minutes, in which the node is heard
		w.now += 4 * sched.Minute
		contact()
		w.apply(Tick{})
	}
	submit()
	w.schedule()
	if w.c.jobs.get(1).State != job.Assigned || w.c.jobs.get(2).State != job.Queued {
		t.Errorf("the jobs are %s and %s", w.c.jobs.get(1).State, w.c.jobs.get(2).State)
	}
	why := w.c.View(w.now).Waiting(w.c.jobs.get(2)).Text
	if want := "project lab has used 64 of its month's budget of 60 GPU-minutes"; !strings.Contains(why, want) {
		t.Errorf("it waits as %q, want %q", why, want)
	}
	if b := submit().Budget; b == nil || b.UsedMinutes != 64 || b.Account != "lab" {
		t.Errorf("the budget after it: %+v", b)
	}
	for w.now < sched.Time(time.Date(2026, 2, 1, 0, 1, 0, 0, time.UTC).UnixMilli()) {
		w.now += 4 * sched.Minute
		contact()
		w.apply(Tick{})
		if w.c.Due() {
			w.schedule()
		}
	}
	if st := w.c.jobs.get(2).State; st != job.Assigned {
		t.Errorf("in the new month the job is %s: %s", st, w.c.View(w.now).Waiting(w.c.jobs.get(2)).Text)
	}
}
