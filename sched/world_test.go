package sched

import (
	"fmt"
	"maps"
	"slices"

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
	p.Estimates = rapid.SampledFrom([]Estimates{ByUser, ByPredicted, ByExact}).Draw(t, "estimates")
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
	p.Licenses = map[string]int64{"x": rapid.Int64Range(0, 3).Draw(t, "x licences"), "y": 2}
	p.Partitions = map[string]Partition{"a": {Priority: 200}, "b": {Down: rapid.IntRange(0, 3).Draw(t, "b") == 0}}
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
		Cluster: rapid.IntRange(1, 2).Draw(t, "cluster"), CUDA: 1200, DiskMiB: int64(rapid.IntRange(1, 3).Draw(t, "disk")) * 1000, AllowShare: rapid.Bool().Draw(t, "share"),
		Apart:  rapid.IntRange(0, 3).Draw(t, "apart") == 0,
		Switch: rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(t, "switch")}
	n.Features = rapid.SampledFrom([][]string{nil, {"red"}, {"blue", "big"}, {"green", "big"}}).Draw(t, "features")
	n.Storage = rapid.SampledFrom([][]Root{nil, {}, {{Name: "/p"}}, {{Name: "/p", ReadOnly: true}, {Name: "/p/a"}}, {{Name: "/p", Away: "gone"}}}).Draw(t, "storage")
	n.Partitions = rapid.SampledFrom([][]string{nil, {"a"}, {"b"}, {"a", "b"}}).Draw(t, "partitions")
	model := rapid.SampledFrom(testModels).Draw(t, "model")
	for g := range rapid.IntRange(0, 4).Draw(t, "gpus") {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(name, "-", g), Model: model, MemMiB: 40960, ComputeCap: 80, NUMA: g / 2,
			Drained: rapid.IntRange(0, 9).Draw(t, "bad gpu") == 0})
	}
	if rapid.IntRange(0, 7).Draw(t, "drain") == 0 {
		n.State, n.Reason = Drained, "test"
	}
	if old, ok := w.s.Node(name); ok { // the same machine: only marks change
		old.State, old.Reason, old.Storage, old.Partitions = n.State, n.Reason, n.Storage, n.Partitions
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
	s.Storage = rapid.SampledFrom([][]Storage{nil, nil, nil, {{Path: "/p/x"}}, {{Path: "/p/a", Write: true}, {Path: "/p"}}}).Draw(t, "storage")
	s.AllMem = rapid.IntRange(0, 9).Draw(t, "all memory") == 0
	if rapid.IntRange(0, 4).Draw(t, "gang") == 0 {
		s.Nodes = rapid.IntRange(2, 3).Draw(t, "ranks")
	}
	if !s.AllGPUs && rapid.IntRange(0, 4).Draw(t, "groups") == 0 {
		for range rapid.IntRange(1, 2).Draw(t, "others") {
			g := Group{Nodes: rapid.IntRange(1, 2).Draw(t, "nodes of a group"), MilliCPU: 1000, MilliGPU: rapid.SampledFrom([]int64{0, 500, 1000, 3000}).Draw(t, "their GPUs")}
			g.GPUModels = rapid.SampledFrom([][]string{nil, {"h100"}, {"a100"}}).Draw(t, "their model")
			s.Groups = append(s.Groups, g)
		}
	}
	if s.Ranks() > 1 && !s.AllMem && !s.AllGPUs && !s.Exclusive && s.MilliGPU%1000 == 0 && rapid.Bool().Draw(t, "shares nodes") {
		s.PerNode = rapid.IntRange(2, 4).Draw(t, "ranks on a node")
		for i := range s.Groups {
			s.Groups[i].MilliGPU = s.Groups[i].MilliGPU / 1000 * 1000
		}
	}
	s.Licenses = rapid.SampledFrom([][]License{nil, nil, nil, {{Name: "x", Count: 1}}, {{Name: "y", Count: 2}, {Name: "x", Count: 1}}, {{Name: "y", Count: 1}}, {{Name: "z", Count: 1}}}).Draw(t, "licences")
	s.Partitions = rapid.SampledFrom([][]string{nil, nil, nil, {"a"}, {"a", "b"}, {"b", "a"}}).Draw(t, "in")
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
	case 8:
		s.DiskMiB = 2000
	case 5:
		s.NodeNames = []string{"N-1", "n2", "n4"}
	case 6:
		s.ExcludeNodes = []string{"n1", "N-3"}
	case 7:
		s.AnyFeatures = [][]string{{"red", "blue"}, {"big"}}[:rapid.IntRange(1, 2).Draw(t, "lists")]
	}
	return s
}

func (w *world) job() Job {
	t := w.t
	w.next++
	j := Job{ID: w.next, Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), User: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user"),
		QOS: rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "qos"), Shape: w.shape(), Submitted: w.now,
		Limit: Minute * Time(rapid.IntRange(0, 60).Draw(t, "limit")), Priority: -rapid.IntRange(0, 2).Draw(t, "nice")}
	if rapid.IntRange(0, 2).Draw(t, "shorter") == 0 {
		j.LimitMin = Minute * Time(rapid.IntRange(0, 60).Draw(t, "least limit"))
	}
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
		if st.Limit > 0 {
			j.Limit, limit = st.Limit, st.Limit
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
		win := Window{Name: rapid.SampledFrom([]string{"w0", "w1"}).Draw(t, "window"), Start: start, End: start + 30*Minute, Nodes: []string{"n0", "n1"}, Maintenance: rapid.Bool().Draw(t, "maintenance"), Users: []string{"c"}}
		for range rapid.IntRange(0, 3).Draw(t, "more times") {
			from := win.Next(Never).End + Minute*Time(rapid.IntRange(0, 20).Draw(t, "pause"))
			win.More = append(win.More, Span{Start: from, End: from + Minute*Time(rapid.IntRange(1, 20).Draw(t, "length"))})
		}
		w.reserve(win)
	case 3:
		w.s.Unreserve(rapid.SampledFrom([]string{"w0", "w1"}).Draw(t, "window"))
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
			if run := w.s.running[id]; run.End+2*Minute < w.now {
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

// reserve makes a window of whole nodes, or of some of their GPUs.
func (w *world) reserve(win Window) {
	t := w.t
	may := false // there may be too few
	switch rapid.IntRange(0, 3).Draw(t, "part of the nodes") {
	case 0:
		for _, name := range win.Nodes {
			for g := range rapid.IntRange(0, 3).Draw(t, "GPUs kept") {
				win.GPUs = append(win.GPUs, fmt.Sprint(name, "-", g))
			}
		}
	case 1:
		win.GPUsPerNode, may = rapid.IntRange(1, 3).Draw(t, "GPUs of each"), true
	case 2:
		win.Nodes, win.Count, win.GPUsPerNode, may = nil, rapid.IntRange(1, 2).Draw(t, "count"), rapid.IntRange(0, 2).Draw(t, "GPUs of each"), true
	}
	before := w.s.index.Windows[win.Name]
	err := w.s.Reserve(win)
	if err != nil && (!may || w.s.index.Windows[win.Name] != before) {
		t.Fatal(err)
	}
	if got, ok := w.s.Window(win.Name); ok && err == nil && (got.Count > 0 || got.GPUsPerNode > 0 || got.Validate() != nil) {
		t.Fatalf("nodes of the window are not chosen: %+v", got)
	}
}
