package sched

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gbatch/accounting"
)

// world is a small cluster that is driven at random.
type world struct {
	t      *rapid.T
	s      *State
	ledger *accounting.Ledger
	now    Time
	next   JobID
}

var testModels = []string{"NVIDIA A100", "NVIDIA H100"}

func randomPolicy(t *rapid.T) Policy {
	p := DefaultPolicy()
	p.Mode = rapid.SampledFrom([]Mode{Gbatch, Easy, EasySJBF, Conservative}).Draw(t, "mode")
	p.Estimates = rapid.SampledFrom([]Estimates{ByUser, ByPredicted}).Draw(t, "estimates")
	p.Placement = rapid.SampledFrom([]Placement{PlaceGbatch, PlaceBestFit, PlaceRandom, PlaceFGD}).Draw(t, "placement")
	p.BackfillReservations = rapid.IntRange(0, 4).Draw(t, "reservations")
	p.HaltGrace = Minute
	p.QOS = map[string]QOS{"low": {}, "high": {Priority: 500}}
	if rapid.Bool().Draw(t, "limited") {
		p.User = Limits{Running: rapid.IntRange(0, 3).Draw(t, "running"), MilliGPU: 1000 * rapid.Int64Range(0, 4).Draw(t, "gpus")}
		p.Project = Limits{GPUMinutes: rapid.Int64Range(0, 500).Draw(t, "gpu-minutes")}
		p.QOS["low"] = QOS{PerUser: Limits{Running: 1}}
	}
	p.Values = map[string]int64{"H100": 3000}
	return p
}

func newWorld(t *rapid.T, p Policy) *world {
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	l, err := accounting.New(accounting.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: s, ledger: l, now: 10_000_000}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		w.setNode(fmt.Sprintf("n%d", i))
	}
	return w
}

func (w *world) setNode(name string) {
	t := w.t
	n := Node{Name: name, MilliCPU: 1000 * rapid.Int64Range(1, 8).Draw(t, "cores"), MemMiB: 1024 * rapid.Int64Range(1, 8).Draw(t, "gib"),
		Cluster: rapid.IntRange(1, 2).Draw(t, "cluster"), CUDA: 1200, AllowShare: rapid.Bool().Draw(t, "share"),
		Switch: rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(t, "switch")}
	model := rapid.SampledFrom(testModels).Draw(t, "model")
	for g := range rapid.IntRange(0, 4).Draw(t, "gpus") {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(name, "-", g), Model: model, MemMiB: 40960, ComputeCap: 80, NUMA: g / 2,
			Drained: rapid.IntRange(0, 9).Draw(t, "bad gpu") == 0})
	}
	if rapid.IntRange(0, 7).Draw(t, "drain") == 0 {
		n.State, n.Reason = Drained, "test"
	}
	if old, ok := w.s.Node(name); ok { // the same machine: only marks change
		old.State, old.Reason = n.State, n.Reason
		for i := range old.GPUs {
			old.GPUs[i].Drained = i < len(n.GPUs) && n.GPUs[i].Drained
		}
		n = old
	}
	if err := w.s.SetNode(n); err != nil {
		t.Fatal(err)
	}
}

func (w *world) shape() *Shape {
	t := w.t
	s := &Shape{MilliCPU: 1000 * rapid.Int64Range(1, 4).Draw(t, "cpu"), MemMiB: 512 * rapid.Int64Range(0, 6).Draw(t, "mem")}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		s.MilliGPU = rapid.SampledFrom([]int64{250, 500, 600}).Draw(t, "part")
	case 1:
		s.AllGPUs = true
	case 2:
		s.Exclusive = true
	case 3, 4, 5, 6:
		s.MilliGPU = 1000 * rapid.Int64Range(1, 4).Draw(t, "whole")
	}
	if rapid.IntRange(0, 4).Draw(t, "gang") == 0 {
		s.Nodes = rapid.IntRange(2, 3).Draw(t, "ranks")
	}
	switch rapid.IntRange(0, 9).Draw(t, "constraint") {
	case 0:
		s.GPUModels = []string{"h100"}
	case 1:
		s.Node = "N-0"
	case 2:
		s.Cluster = 1
	case 3:
		s.GPUMemMiB = 20000
	case 4:
		s.MinCUDA = 1300
	}
	return s
}

func (w *world) job() Job {
	t := w.t
	w.next++
	j := Job{ID: w.next, Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), User: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user"),
		QOS: rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "qos"), Shape: w.shape(), Submitted: w.now,
		Limit: Minute * Time(rapid.IntRange(0, 60).Draw(t, "limit")), Priority: -rapid.IntRange(0, 2).Draw(t, "nice")}
	j.Predicted = j.Limit / 2 * Time(rapid.IntRange(0, 1).Draw(t, "predicted"))
	switch rapid.IntRange(0, 11).Draw(t, "extra") {
	case 0:
		j.NotBefore = w.now + Minute*Time(rapid.IntRange(0, 30).Draw(t, "after"))
	case 1:
		j.NotAfter = w.now + Minute*Time(rapid.IntRange(0, 30).Draw(t, "before"))
	case 2:
		j.Interactive = true
	case 3:
		j.Bucket, j.BucketMax = "b", 1
	case 4:
		j.Reservations = []string{"w0"}
	case 5:
		j.MaxQueued = 10 * Minute
	}
	return j
}

func (w *world) input() Input {
	return Input{Now: w.now, State: w.s, Shares: w.ledger.Shares(int64(w.now))}
}

// apply does what the plan says.
func (w *world) apply(p *Plan) {
	for _, r := range p.Rejects {
		if !w.s.Dequeue(r.Job) {
			w.t.Fatalf("rejected job %d does not wait", r.Job)
		}
	}
	for _, st := range p.Starts {
		j, ok := w.s.Waiting(st.Job)
		if !ok {
			w.t.Fatalf("started job %d does not wait", st.Job)
		}
		limit := j.Limit
		if limit == 0 {
			limit = w.s.policy.DefaultLimit
		}
		if err := w.s.Start(Running{Job: j, Ranks: st.Ranks, Start: w.now, End: w.now + limit}); err != nil {
			w.t.Fatal(err)
		}
		w.charge(j, st.Ranks, w.ledger.Begin)
	}
	for _, h := range p.Halts {
		if !w.s.Halting(h.Job) {
			w.t.Fatalf("job %d is to be ended, and does not run", h.Job)
		}
	}
}

func (w *world) charge(j Job, ranks []Allocation, do func(accounting.Charge) error) {
	for _, a := range ranks {
		c := accounting.Charge{Project: j.Project, User: j.User, MilliGPU: a.MilliGPU(), MilliCPU: a.MilliCPU, MemMiB: a.MemMiB, Start: int64(w.now), End: int64(w.now)}
		if err := do(c); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) end(id JobID) {
	x, _ := w.s.Running(id)
	if !w.s.End(id) {
		w.t.Fatalf("job %d does not run", id)
	}
	for _, a := range x.Ranks {
		c := accounting.Charge{Project: x.Job.Project, User: x.Job.User, MilliGPU: a.MilliGPU(), MilliCPU: a.MilliCPU, MemMiB: a.MemMiB, Start: int64(x.Start), End: int64(w.now)}
		if err := w.ledger.End(c); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) someRunning() (JobID, bool) {
	ids := slices.Sorted(maps.Keys(w.s.running))
	if len(ids) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(ids).Draw(w.t, "running job"), true
}

// disturb changes something.
func (w *world) disturb() {
	t := w.t
	switch rapid.IntRange(0, 11).Draw(t, "disturb") {
	case 0:
		w.setNode(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node")))
	case 1:
		w.s.RemoveNode(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node")))
	case 2:
		start := w.now + Minute*Time(rapid.IntRange(-20, 40).Draw(t, "window start"))
		win := Window{Name: "w0", Start: start, End: start + 30*Minute, Nodes: []string{"n0", "n1"}, Maintenance: rapid.Bool().Draw(t, "maintenance"), Users: []string{"c"}}
		if err := w.s.Reserve(win); err != nil {
			t.Fatal(err)
		}
	case 3:
		w.s.Unreserve("w0")
	case 4:
		if ids := slices.Sorted(maps.Keys(w.s.waiting)); len(ids) > 0 {
			w.s.Dequeue(rapid.SampledFrom(ids).Draw(t, "waiting job"))
		}
	case 5, 6, 7:
		if id, ok := w.someRunning(); ok {
			w.end(id)
		}
	default:
		w.now += Minute * Time(rapid.IntRange(0, 20).Draw(t, "minutes"))
		for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
			if x := w.s.running[id]; x.End+2*Minute < w.now {
				w.end(id)
			}
		}
	}
}

func (w *world) step() Plan {
	for range rapid.IntRange(0, 5).Draw(w.t, "jobs") {
		if err := w.s.Enqueue(w.job()); err != nil {
			w.t.Fatal(err)
		}
	}
	p := Decide(w.input())
	return p
}

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
	for _, name := range slices.Sorted(maps.Keys(w.s.nodes)) {
		if n := w.s.nodes[name]; !n.gone {
			calls = append(calls, func() error { return s.SetNode(n.Node) })
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.s.running)) {
		calls = append(calls, func() error { return s.Adopt(w.s.running[id].Running) })
	}
	for _, id := range slices.Sorted(maps.Keys(w.s.waiting)) {
		calls = append(calls, func() error { return s.Enqueue(w.s.waiting[id].job()) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.s.windows)) {
		calls = append(calls, func() error { return s.Reserve(w.s.windows[name].Window) })
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
		limit, _ := o.limitOf(j)
		final.runs = append(final.runs, Running{Job: j, Ranks: st.Ranks, Start: w.now, End: w.now + limit})
	}
	for _, r := range p.Reservations {
		plans[r.Job] = r.At
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
		var want []Code
		code := o.code(j)
		if code == CodeNever {
			want = append(want, code)
		}
		if final.over(j, leastMilli(j.Shape)) {
			want = append(want, CodeLimit)
		}
		if j.since() > w.now {
			want = append(want, CodeBeginTime)
		}
		if code == CodeReservation || code == CodeResources {
			want = append(want, code)
		}
		var got []Code
		for _, r := range x.Estimate.Reasons {
			if r.Text == "" {
				w.t.Fatalf("job %d: reason %s without a text", id, r.Code)
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

// reasonAgrees checks the one reason of list views.
func (w *world) reasonAgrees(p *Plan, j Job, all []Code) {
	r := w.s.ReasonOf(p, j.ID)
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
