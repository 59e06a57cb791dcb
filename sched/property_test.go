package sched

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gbatch/sched/words"
)

// planText is the plan as bytes.
func planText(t interface{ Fatal(...any) }, p Plan) string {
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rebuilt is an equal State, made in another order as after a restart.
func (w *world) rebuilt() *State {
	s, err := New(w.s.Policy())
	if err != nil {
		w.t.Fatal(err)
	}
	var calls []func() error
	for _, name := range slices.Sorted(maps.Keys(w.s.index.Nodes)) {
		if n := w.s.index.Nodes[name]; !n.Gone {
			calls = append(calls, func() error { return s.SetNode(n.Node) })
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
		calls = append(calls, func() error { return s.Adopt(w.s.running[id].Running) })
	}
	for _, id := range slices.Sorted(maps.Keys(w.s.waiting)) {
		calls = append(calls, func() error { return s.Enqueue(w.s.waiting[id].job()) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.s.index.Windows)) {
		calls = append(calls, func() error { return s.Reserve(*w.s.index.Windows[name]) })
	}
	for len(calls) > 0 {
		i := rapid.IntRange(0, len(calls)-1).Draw(w.t, "order")
		if err := calls[i](); err != nil {
			w.t.Fatal(err)
		}
		calls = slices.Delete(calls, i, i+1)
	}
	return s
}

func TestPlansAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, randomPolicy(t))
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			p := w.step()
			if err := newOracle(w.input()).prove(&p); err != nil {
				t.Fatalf("%v\n%s", err, planText(t, p))
			}
			if err := w.s.Check(); err != nil {
				t.Fatal(err)
			}
			if again := Decide(w.input()); planText(t, again) != planText(t, p) {
				t.Fatalf("deciding twice gives\n%s\n%s", planText(t, p), planText(t, again))
			}
			w.explained(&p)
			w.positioned()
			w.apply(&p)
			if err := w.s.Check(); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 4).Draw(t, "disturbances") {
				w.disturb()
				if err := w.s.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// explained checks what the explanation of each waiting job says against the
// oracle.
func (w *world) explained(p *Plan) {
	in := w.input()
	o := newOracle(in)
	final := newOracle(in)
	starts, plans := map[JobID]bool{}, map[JobID]Time{}
	for _, st := range p.Starts {
		starts[st.Job] = true
		j, _ := w.s.Waiting(st.Job)
		j, _ = o.given(j, st.Limit)
		limit, estimate := o.limitOf(j)
		final.lend(j.Shape, span{w.now, w.now + estimate})
		final.runs = append(final.runs, Running{Job: j, Ranks: st.Ranks, Start: w.now, End: w.now + limit})
	}
	for _, r := range p.Reservations {
		plans[r.Job] = r.At
		j, _ := w.s.Waiting(r.Job)
		if short, _ := o.given(j, r.Limit); true {
			_, estimate := o.limitOf(short)
			final.lend(j.Shape, span{r.At, r.At + estimate})
		}
		final.plan = append(final.plan, promised{j, r.At, milliOf(r.Ranks)})
	}
	for _, id := range slices.Sorted(maps.Keys(w.s.waiting)) {
		x := Explain(in, id)
		j, _ := w.s.Waiting(id)
		if x.Estimate.Now != starts[id] {
			w.t.Fatalf("job %d: explained to start now: %t, planned to: %t", id, x.Estimate.Now, starts[id])
		}
		if x.Estimate.Now {
			continue
		}
		if at, ok := plans[id]; ok && at != x.Estimate.At {
			w.t.Fatalf("job %d: explained to start at %d, planned for %d", id, x.Estimate.At, at)
		}
		if place, _ := in.Position(id); place > 0 && x.NBefore > place-1 {
			w.t.Fatalf("job %d: has place %d and %d before it", id, place, x.NBefore)
		}
		var want []Code
		code := o.code(o.brief(j))
		lacks, neverLicensed := final.lacksLicenses(j)
		_, planned := plans[id]
		alone := *final
		alone.runs, alone.plan = nil, nil
		beyond := alone.over(j, leastMilli(j.Shape))
		if _, known := w.s.Beyond(j); known != beyond {
			w.t.Fatalf("job %d is beyond a limit by itself: %t, want %t", id, known, beyond)
		}
		if beyond {
			want = append(want, CodeNever)
		}
		if code == CodeNever || neverLicensed {
			want = append(want, CodeNever)
		}
		if !planned && !beyond && final.over(j, leastMilli(j.Shape)) {
			want = append(want, CodeLimit)
		}
		if j.Since() > w.now {
			want = append(want, CodeBeginTime)
		}
		if code == CodeReservation {
			want = append(want, code)
		}
		if lacks && !neverLicensed {
			want = append(want, CodeLicenses)
		}
		if code == CodeResources {
			want = append(want, code)
		}
		var got []Code
		for _, r := range x.Estimate.Reasons {
			if r.Text == "" || r.Code == CodePriority && x.NBefore > 0 && !strings.HasPrefix(r.Text, words.Plural(x.NBefore, "job")+" before it") {
				w.t.Fatalf("job %d: reason %s says %q of %d jobs", id, r.Code, r.Text, x.NBefore)
			}
			got = append(got, r.Code)
		}
		if code == CodePriority && slices.Contains(got, CodePriority) {
			want = append(want, code) // if what is free is planned for others
		}
		if !slices.Equal(got, want) {
			w.t.Fatalf("job %d: reasons %v, want %v", id, x.Estimate.Reasons, want)
		}
		w.reasonAgrees(p, j, got)
	}
}

// positioned checks the place of each waiting job against the sorted queue. Jobs
// whose deadline has passed leave the queue in the round, and have a place until
// then: with one of them there is nothing to compare.
func (w *world) positioned() {
	in := w.input()
	want := map[JobID]int{}
	for id, e := range w.s.waiting {
		if e.deadline() <= w.now {
			return
		}
		want[id] = 0
	}
	queue := newOracle(in).ordered()
	for i, j := range queue {
		want[j.ID] = i + 1
	}
	for id, at := range want {
		if got, of := in.Position(id); got != at || of != len(queue) {
			w.t.Fatalf("job %d is %d of %d in the queue, want %d of %d", id, got, of, at, len(queue))
		}
	}
}

// reasonAgrees checks the one reason of list views.
func (w *world) reasonAgrees(p *Plan, j Job, all []Code) {
	r := w.s.ReasonOf(p, j.ID)
	if ref, ok := w.s.Ref(j.ID); ok {
		if code := p.CodeFor(j.ID, ref); code != p.ReasonFor(j.ID, ref).Code {
			w.t.Fatalf("job %d waits for %s by its code and for %s by its reason", j.ID, code, p.ReasonFor(j.ID, ref).Code)
		}
	}
	if r.Code == CodeNotYetEvaluated || r.Text == "" {
		w.t.Fatalf("job %d: %v", j.ID, r)
	}
	if r.Code == CodeDeadline || r.Code == CodeInteractive {
		return
	}
	never := slices.Contains(all, CodeNever)
	if len(all) > 0 && never != (r.Code == CodeNever) && !slices.Contains(all, CodeLimit) && !slices.Contains(all, CodeBeginTime) {
		w.t.Fatalf("job %d: listed as %v, explained as %v", j.ID, r, all)
	}
}

func TestRestartAndOrderDoNotChangeThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, randomPolicy(t))
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			p := w.step()
			in := w.input()
			in.State = w.rebuilt()
			if got, want := planText(t, Decide(in)), planText(t, p); got != want {
				t.Fatalf("after a restart\n%s\nbefore\n%s", got, want)
			}
			w.apply(&p)
			for range rapid.IntRange(0, 3).Draw(t, "disturbances") {
				w.disturb()
			}
		}
	})
}
