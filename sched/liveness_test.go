package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every waiting job starts in the end, or has a reason that is true for ever.
func TestEveryJobStartsOrNeverCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPolicy(t)
		p.User, p.Project = Limits{Running: p.User.Running}, Limits{}
		w := newWorld(t, p)
		for i := range 5 {
			if n, ok := w.s.Node(fmt.Sprintf("n%d", i)); ok {
				n.State = Up
				for i := range n.Storage {
					n.Storage[i].Away = ""
				}
				for g := range n.GPUs {
					n.GPUs[g].Drained = false
				}
				if err := w.s.SetNode(n); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "jobs") {
			j := w.job()
			j.Interactive, j.NotAfter, j.MaxQueued = false, 0, 0
			if err := w.s.Enqueue(j); err != nil {
				t.Fatal(err)
			}
		}
		w.drain(func(Plan) {})
		plan := Decide(w.input())
		for id := range w.s.waiting {
			if r := w.s.ReasonOf(&plan, id); r.Code != CodeNever {
				t.Fatalf("job %d waits for ever: %v", id, r)
			}
		}
	})
}

// drain decides and ends jobs, by their expected run time, until nothing runs.
func (w *world) drain(see func(Plan)) {
	for range 1000 {
		p := Decide(w.input())
		see(p)
		w.apply(&p)
		next := p.Wake
		for _, x := range w.s.running {
			_, run := newOracle(w.input()).limitOf(x.Job)
			if end := x.Start + run; next == 0 || end < next {
				next = end
			}
		}
		if next == 0 {
			return
		}
		w.now = max(next, w.now)
		for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
			x := w.s.running[id]
			if _, run := newOracle(w.input()).limitOf(x.Job); x.Start+run <= w.now {
				w.end(id)
			}
		}
	}
	p := Decide(w.input())
	w.t.Fatalf("jobs run for ever: at %d %s, %d run", w.now, planText(w.t, p), len(w.s.running))
}

// A job that has a reservation starts no later than that, whatever is started
// before it, as long as jobs keep to their limits and none of a higher priority
// arrives. Conservative mode promises it to all jobs, the others to the first.
func TestNoReservationIsDelayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		p.Weights = Weights{} // first come, first served
		p.MaxWaitBoost = 0
		p.Mode = rapid.SampledFrom([]Mode{Conservative, Easy, EasySJBF, Gbatch}).Draw(t, "mode")
		w := newWorld(t, p)
		for range rapid.IntRange(1, 20).Draw(t, "jobs") {
			j := w.job()
			j.Interactive, j.NotAfter, j.MaxQueued, j.NotBefore, j.Priority, j.Predicted, j.QOS, j.Bucket = false, 0, 0, 0, 0, 0, "", ""
			if err := w.s.Enqueue(j); err != nil {
				t.Fatal(err)
			}
			w.now += Time(rapid.IntRange(0, 100).Draw(t, "gap")) * Second
		}
		promised := map[JobID]Time{}
		var last []Reservation
		for range 500 {
			in := w.input()
			in.Last = last
			plan := Decide(in)
			last = plan.Reservations
			for _, st := range plan.Starts {
				if at, ok := promised[st.Job]; ok && at < w.now {
					t.Fatalf("job %d starts at %d, promised for %d", st.Job, w.now, at)
				}
			}
			for i, r := range plan.Reservations {
				if at, ok := promised[r.Job]; ok && r.At > at {
					t.Fatalf("job %d is planned for %d, promised for %d", r.Job, r.At, at)
				}
				if i == 0 || p.Mode == Conservative {
					promised[r.Job] = r.At
				}
			}
			w.apply(&plan)
			next := plan.Wake
			for _, run := range w.s.running {
				if next == 0 || run.End < next {
					next = run.End
				}
			}
			if next == 0 {
				return
			}
			w.now = max(w.now, next)
			for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
				if run := w.s.running[id]; run.End <= w.now || rapid.IntRange(0, 7).Draw(t, "ends early") == 0 {
					w.end(id)
				}
			}
		}
		t.Fatal("jobs run for ever")
	})
}
