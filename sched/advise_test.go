package sched

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Advice comes true: the changed job, queued in place of the other, starts when
// it was said to.
func TestAdviceComesTrue(t *testing.T) {
	advised := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, randomPolicy(t))
		for range 2 {
			p := w.step()
			w.apply(&p)
		}
		for _, id := range slices.Sorted(maps.Keys(w.s.waiting)) {
			before := planText(t, Decide(w.input()))
			for _, a := range Advise(w.input(), id) {
				advised++
				old, _ := w.s.Waiting(id)
				if err := w.s.Enqueue(a.Job); err != nil {
					t.Fatal(err)
				}
				x := Explain(w.input(), id)
				if x.Estimate.At != a.At || x.Estimate.Now != a.Now {
					t.Fatalf("advice %+v: starts at %d", a, x.Estimate.At)
				}
				plan := Decide(w.input())
				started := slices.ContainsFunc(plan.Starts, func(s Start) bool { return s.Job == id })
				if started != a.Now {
					t.Fatalf("advice %+v: starts now: %t", a, started)
				}
				if err := w.s.Enqueue(old); err != nil {
					t.Fatal(err)
				}
			}
			if after := planText(t, Decide(w.input())); after != before {
				t.Fatalf("the plan before and after giving advice:\n%s\n%s", before, after)
			}
		}
	})
	if advised == 0 {
		t.Error("no advice was given in any case")
	}
}
