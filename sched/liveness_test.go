package sched

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gbatch/accounting"
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
	w.t.Fatal("jobs run for ever")
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
			j.Interactive, j.NotAfter, j.MaxQueued, j.NotBefore, j.Priority, j.Predicted, j.QOS = false, 0, 0, 0, 0, 0, ""
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
			for _, x := range w.s.running {
				if next == 0 || x.End < next {
					next = x.End
				}
			}
			if next == 0 {
				return
			}
			w.now = max(w.now, next)
			for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
				if x := w.s.running[id]; x.End <= w.now || rapid.IntRange(0, 7).Draw(t, "ends early") == 0 {
					w.end(id)
				}
			}
		}
		t.Fatal("jobs run for ever")
	})
}

// In a closed load, where everybody always has jobs waiting, what each uses goes
// to their shares.
func TestUsageConvergesToShares(t *testing.T) {
	c := accounting.DefaultConfig()
	c.Tree = accounting.Tree{
		"vision": {Shares: 2, Users: map[string]int64{"ann": 3, "bob": 1}},
		"speech": {Shares: 1, Users: map[string]int64{"ann": 1, "bob": 1}},
		"robots": {Shares: 1, Users: map[string]int64{"ann": 1, "bob": 1}},
	}
	ledger, err := accounting.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	p.Weights = Weights{FairShare: 10_000}
	p.MaxWaitBoost = 0
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := Node{Name: "n", MilliCPU: 64_000, MemMiB: 1 << 20}
	for g := range 8 {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(g), Model: "A100"})
	}
	if err := s.SetNode(n); err != nil {
		t.Fatal(err)
	}
	next, now := JobID(0), Time(0)
	shape := &Shape{MilliGPU: 1000, MilliCPU: 1000}
	feed := func(project, user string) {
		next++
		if err := s.Enqueue(Job{ID: next, Project: project, User: user, Shape: shape, Submitted: now, Limit: Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for project := range c.Tree {
		for range 8 {
			feed(project, "ann")
			feed(project, "bob")
		}
	}
	for range 600 {
		for _, id := range slices.Sorted(maps.Keys(s.running)) {
			s.End(id)
		}
		plan := Decide(Input{Now: now, State: s, Shares: ledger.Shares(int64(now))})
		for _, st := range plan.Starts {
			j, _ := s.Waiting(st.Job)
			if err := s.Start(Running{Job: j, Ranks: st.Ranks, Start: now}); err != nil {
				t.Fatal(err)
			}
			charge := accounting.Charge{Project: j.Project, User: j.User, MilliGPU: 1000, Start: int64(now), End: int64(now + Hour)}
			if err := ledger.Add(charge); err != nil {
				t.Fatal(err)
			}
			feed(j.Project, j.User)
		}
		now += Hour
	}
	total := int64(0)
	for _, r := range ledger.Rows(int64(now)) {
		total += r.Total.MilliGPU
	}
	want := map[string]int64{"vision/ann": 375, "vision/bob": 125, "speech/ann": 125, "speech/bob": 125, "robots/ann": 125, "robots/bob": 125}
	for _, r := range ledger.Rows(int64(now)) {
		name := r.Project + "/" + r.User
		if got := r.Total.MilliGPU * 1000 / total; got < want[name]-15 || got > want[name]+15 {
			t.Errorf("%s used %d thousandths, its share is %d", name, got, want[name])
		}
	}
}

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
			x := w.s.running[h.Job]
			if x == nil || !x.Job.Restartable || x.Job.QOS != "low" || w.now-x.Start < x.Job.MinRun || x.Halting || seen[h.Job] {
				t.Fatalf("halt %+v of %+v", h, x)
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

func TestBadInputIsRefusedOrHarmless(t *testing.T) {
	w := func() *State {
		s, err := New(DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		n := Node{Name: "n", MilliCPU: 8000, MemMiB: 8192, GPUs: []GPU{{UUID: "a"}, {UUID: "b"}}}
		if err := s.SetNode(n); err != nil {
			t.Fatal(err)
		}
		return s
	}
	ok := Job{ID: 1, Shape: &Shape{MilliGPU: 1000}, Limit: Hour}
	a := Allocation{Node: "n", GPUs: []GPUShare{{"a", 1000}}, MilliCPU: 1000}
	run := func(edit func(*Running)) func(*State) error {
		return func(s *State) error {
			r := Running{Job: ok, Ranks: []Allocation{a}}
			edit(&r)
			return s.Start(r)
		}
	}
	job := func(edit func(*Job)) func(*State) error {
		return func(s *State) error { j := ok; x := *j.Shape; j.Shape = &x; edit(&j); return s.Enqueue(j) }
	}
	policy := func(edit func(*Policy)) func(*State) error {
		return func(s *State) error { p := DefaultPolicy(); edit(&p); return s.SetPolicy(p) }
	}
	for _, tc := range []struct {
		name string
		do   func(*State) error
		want string
	}{
		{"negative-weight", policy(func(p *Policy) { p.Weights.Age = -1 }), "weights.age is -1"},
		{"absurd-weight", policy(func(p *Policy) { p.Weights.FairShare = 1 << 60 }), "weights.fairShare"},
		{"zero-max-age", policy(func(p *Policy) { p.MaxAge = 0 }), "maxAgeMs is 0"},
		{"unknown-mode", policy(func(p *Policy) { p.Mode = "best" }), `mode is "best"`},
		{"negative-limit", policy(func(p *Policy) { p.Users = map[string]Limits{"u": {Running: -1}} }), "users.u"},
		{"mutual-preemption", policy(func(p *Policy) {
			p.QOS = map[string]QOS{"a": {Preempts: []string{"b"}}, "b": {Preempts: []string{"a"}}}
		}), "preempt each other"},
		{"unknown-qos", policy(func(p *Policy) { p.QOS = map[string]QOS{"a": {Preempts: []string{"x"}}} }), `names "x"`},
		{"bad-mix", policy(func(p *Policy) { p.Mix = []MixShape{{Shape: Shape{MilliGPU: -1}, Weight: 1}} }), "mix[0].shape"},
		{"no-shape", job(func(j *Job) { j.Shape = nil }), "shape is missing"},
		{"nothing", job(func(j *Job) { j.Shape.MilliGPU = 0 }), "asks for nothing"},
		{"half-more", job(func(j *Job) { j.Shape.MilliGPU = 1500 }), "milliGpu is 1500"},
		{"negative-gpus", job(func(j *Job) { j.Shape.MilliGPU = -1000 }), "milliGpu is -1000"},
		{"huge-cpu", job(func(j *Job) { j.Shape.MilliCPU = 1 << 62 }), "milliCpu"},
		{"negative-limit-time", job(func(j *Job) { j.Limit = -1 }), "limit is -1"},
		{"priority", job(func(j *Job) { j.Priority = 1 << 40 }), "priority"},
		{"window-backwards", func(s *State) error { return s.Reserve(Window{Name: "w", Start: 2, End: 1, Count: 1}) }, "end after the start"},
		{"window-too-large", func(s *State) error { return s.Reserve(Window{Name: "w", Start: 1, End: 2, Count: 9}) }, "wants 9 nodes"},
		{"node-twice-a-gpu", func(s *State) error { return s.SetNode(Node{Name: "m", GPUs: []GPU{{UUID: "x"}, {UUID: "x"}}}) }, `the UUID "x"`},
		{"node-negative", func(s *State) error { return s.SetNode(Node{Name: "m", MilliCPU: -1}) }, "-1 milli CPU"},
		{"start-unknown-node", run(func(r *Running) { r.Ranks = []Allocation{{Node: "x", MilliCPU: 1}} }), `node "x" is not known`},
		{"start-unknown-gpu", run(func(r *Running) { r.Ranks = []Allocation{{Node: "n", GPUs: []GPUShare{{"z", 1000}}}} }), "reports no GPU z"},
		{"start-same-gpu-twice", run(func(r *Running) {
			r.Ranks = []Allocation{{Node: "n", GPUs: []GPUShare{{"a", 600}, {"a", 600}}}}
		}), "held already"},
		{"start-too-much-cpu", run(func(r *Running) { r.Ranks = []Allocation{{Node: "n", MilliCPU: 9000}} }), "8000 milli CPU"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := w()
			err := tc.do(s)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if _, known := s.Node("n"); !known || len(s.running)+len(s.waiting) > 0 {
				t.Error("the State was changed")
			}
		})
	}
}

// A node that shrinks under its jobs gets nothing new, and nothing is given out
// twice when it comes back; a clock that goes back decides as it would have.
func TestShrunkenNodeAndBackwardClock(t *testing.T) {
	s, err := New(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	full := Node{Name: "n", MilliCPU: 8000, MemMiB: 8192, GPUs: []GPU{{UUID: "a"}, {UUID: "b"}}}
	set := func(n Node) {
		t.Helper()
		if err := s.SetNode(n); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	set(full)
	shape := &Shape{MilliGPU: 2000, MilliCPU: 8000}
	if err := s.Start(Running{Job: Job{ID: 1, Shape: shape}, Ranks: []Allocation{{Node: "n", MilliCPU: 8000, GPUs: []GPUShare{{"a", 1000}, {"b", 1000}}}}, Start: 1000}); err != nil {
		t.Fatal(err)
	}
	small := full
	small.GPUs, small.MilliCPU = full.GPUs[:1], 4000
	set(small)
	if got := s.Overcommitted(); !slices.Equal(got, []string{"n"}) {
		t.Errorf("overcommitted nodes: %v", got)
	}
	if err := s.Enqueue(Job{ID: 2, Shape: &Shape{MilliCPU: 1000}, Submitted: 5000}); err != nil {
		t.Fatal(err)
	}
	for _, now := range []Time{2000, 10_000, 0, 3000} {
		if p := Decide(Input{Now: now, State: s}); len(p.Starts) != 0 {
			t.Errorf("at %d: %+v starts on a node that is overcommitted", now, p.Starts)
		}
	}
	set(full)
	if !s.End(1) {
		t.Fatal("job 1 does not run")
	}
	set(full)
	if p := Decide(Input{Now: 1000, State: s}); len(p.Starts) != 0 {
		t.Errorf("a job starts before it was submitted: %+v", p.Starts)
	}
	if p := Decide(Input{Now: 6000, State: s}); len(p.Starts) != 1 {
		t.Errorf("job 2 does not start on the node that came back: %+v", p)
	}
	if !s.RemoveNode("n") || s.RemoveNode("n") {
		t.Error("removing a node twice")
	}
}
