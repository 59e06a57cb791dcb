package sched

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched/fixed"
	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// Advice is a change of a waiting job with which it would start sooner. It was
// tried: At is what the scheduler plans for the changed job in the state as it
// is.
type Advice struct {
	Change string   `json:"change"` // in words, as "ask for 2 GPUs"
	Job    Job      `json:"job"`    // as changed
	Now    bool     `json:"now"`    // it would start in this round
	At     Time     `json:"at"`
	Saves  Time     `json:"saves"` // sooner by so much; 0 if the job as it is has no estimate
	Code   string   `json:"code"`  // fewer-gpus, shorter-limit, other-model, ...
	Nodes  []string `json:"nodes,omitempty"`
}

// maxAdvice bounds how many changes are tried for one job.
const maxAdvice = 24

// Advise tries changes of a waiting job, each in a round of its own, and returns
// those with which it would start sooner, the best first.
func Advise(in Input, id JobID) []Advice {
	e := in.State.waiting[id]
	if e == nil {
		return nil
	}
	job := e.job()
	ex := newExplainer(in)
	now := ex.estimate(e)
	tries := ex.changes(e, job)
	ex.close()
	if now.Now {
		return nil
	}
	var out []Advice
	for _, a := range tries[:min(len(tries), maxAdvice)] {
		est, err := tryJob(in, a.Job)
		if err != nil || !est.Known || est.AtLeast || now.Known && est.At >= now.At {
			continue
		}
		a.Now, a.At = est.Now, est.At
		if now.Known {
			a.Saves = now.At - est.At
		}
		for _, r := range est.Ranks {
			a.Nodes = append(a.Nodes, r.Node)
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Advice) int { return cmp.Compare(a.At, b.At) })
	return bestOfEach(out)
}

// bestOfEach keeps, of each kind of change, the first: the one that starts
// soonest, and of equals the one that changes least.
func bestOfEach(all []Advice) []Advice {
	var out []Advice
	for _, a := range all {
		if !slices.ContainsFunc(out, func(b Advice) bool { return a.Code == b.Code }) {
			out = append(out, a)
		}
	}
	return out
}

func tryJob(in Input, j Job) (Estimate, error) {
	undo, err := in.State.pretend(j)
	if err != nil {
		return Estimate{}, err
	}
	defer undo()
	ex := newExplainer(in)
	defer ex.close()
	return ex.estimate(in.State.waiting[j.ID]), nil
}

// changes is what is worth a try, of each kind the smallest change first.
func (ex *explainer) changes(e *entry, job Job) []Advice {
	var out []Advice
	add := func(code, change string, edit func(*Job, *Shape)) {
		j, s := job, *job.Shape
		edit(&j, &s)
		j.Shape = &s
		out = append(out, Advice{Code: code, Change: change, Job: j})
	}
	kind := e.class.kind
	gpus, limit := ex.withinLimit(e.class)
	if len(kind.Shape.Groups) == 0 { // else it would have to be said of which
		ex.lessOfNode(kind, gpus, add)
	}
	for _, t := range ex.shorter(kind, limit) {
		add("shorter-limit", "limit the run time to "+words.Span(t), func(j *Job, _ *Shape) { j.Limit, j.Predicted = t, min(j.Predicted, t) })
	}
	shape := kind.Shape
	if shape.Only != nil {
		add("any-node", "name no node", func(_ *Job, s *Shape) { s.Node, s.NodeNames = "", nil })
	}
	if len(shape.ExcludeNodes) > 0 {
		add("no-exclusions", "exclude no node", func(_ *Job, s *Shape) { s.ExcludeNodes = nil })
	}
	if shape.Cluster != 0 {
		add("any-cluster", "name no cluster", func(_ *Job, s *Shape) { s.Cluster = 0 })
	}
	if shape.Exclusive {
		add("not-exclusive", "share the node", func(_ *Job, s *Shape) { s.Exclusive = false })
	}
	for i, x := range shape.Licenses {
		for _, n := range ex.calendar.licenses.Left(x.Name, x.Count) {
			add("fewer-licenses", "ask for "+words.Plural(int(n), x.Name+" licence"), func(_ *Job, s *Shape) { s.AskLicense(i, n) })
		}
	}
	for i, f := range shape.Features {
		add("fewer-features", fmt.Sprintf("do without the feature %q", f), func(_ *Job, s *Shape) { s.Features = slices.Delete(slices.Clone(s.Features), i, i+1) })
	}
	for i, any := range shape.AnyFeatures {
		add("fewer-features", "do without the feature "+words.OrList(any), func(_ *Job, s *Shape) { s.AnyFeatures = slices.Delete(slices.Clone(s.AnyFeatures), i, i+1) })
	}
	return out
}

// lessOfNode is changes of what each rank takes of its node.
func (ex *explainer) lessOfNode(kind *jobKind, left int64, add func(code, change string, edit func(*Job, *Shape))) {
	shape := kind.Shape
	for _, n := range ex.fewer(kind, left) {
		add("fewer-gpus", "ask for "+words.Plural(int(n), "GPU"), func(_ *Job, s *Shape) { s.MilliGPU = n * WholeGPU })
	}
	if len(shape.Models) > 0 {
		for _, m := range ex.s.index.Models() {
			if !slices.Contains(shape.GPUModels, m) {
				add("other-model", "ask for "+m, func(_ *Job, s *Shape) { s.GPUModels = []string{m} })
			}
		}
	}
	if cpu, mem := ex.smaller(kind); cpu < shape.MilliCPU || mem < shape.MemMiB {
		add("less-cpu-memory", fmt.Sprintf("ask for %s and %s GiB", words.Cores(cpu), words.GiB(mem)),
			func(_ *Job, s *Shape) { s.MilliCPU, s.MemMiB = cpu, mem })
	}
	if g := shape.WholeGPUs(); shape.Ranks() == 1 && !shape.Whole() && g > 1 && g%2 == 0 {
		add("split", fmt.Sprintf("ask for 2 nodes with %d GPUs each", g/2), func(_ *Job, s *Shape) {
			s.Nodes, s.MilliGPU, s.MilliCPU, s.MemMiB = 2, s.MilliGPU/2, (s.MilliCPU+1)/2, (s.MemMiB+1)/2
		})
	}
	if shape.AllMem && !shape.Whole() {
		if mem := ex.mostMemory(kind); mem > shape.MemMiB {
			add("less-memory", fmt.Sprintf("ask for %s GiB, not for all memory of a node", words.GiB(mem)), func(_ *Job, s *Shape) { s.AllMem, s.MemMiB = false, mem })
		}
	}
}

// withinLimit is with how many GPUs of a rank, or with which run time, a job would
// be within the limit that it is over; 0: no such change helps.
func (ex *explainer) withinLimit(c *class) (gpus int64, limit Time) {
	hit, over := ex.usage.overLimit(c)
	milli := c.kind.milliGPU()
	switch left := hit.max - hit.used; {
	case !over || milli == 0 || left <= 0:
	case hit.what == "GPUs":
		return left / WholeGPU / int64(c.kind.Shape.Ranks()), 0
	case hit.what == "GPU-minutes":
		return fixed.MulDiv(left, 1, int64(c.kind.Limit)) / WholeGPU / int64(c.kind.Shape.Ranks()), Time(left/milli) / Minute * Minute
	}
	return 0, 0
}

// fewer is numbers of GPUs below what is asked: what a limit leaves, what is free
// on some node, a half, one.
func (ex *explainer) fewer(kind *jobKind, left int64) []int64 {
	asked := int64(kind.Shape.WholeGPUs())
	if asked <= 1 || kind.Shape.Whole() {
		return nil
	}
	try := []int64{asked / 2, 1, left}
	for _, nodeKind := range ex.s.index.Order {
		f := kind.Shape.On(nodeKind)
		gpus, _ := kind.Shape.GPUsOf(nodeKind.Sample)
		if c := int64(gpus.Count()); c < asked {
			try = append(try, c)
		}
		if !f.Now() {
			continue
		}
		for _, n := range nodeKind.Nodes {
			if n.TakesJobs() && kind.Shape.Named(n) {
				try = append(try, int64(f.GPUs.And(n.Free).Count()))
			}
		}
	}
	slices.Sort(try)
	try = slices.Compact(try)
	slices.Reverse(try)
	try = slices.DeleteFunc(try, func(n int64) bool { return n < 1 || n >= asked })
	return try[:min(len(try), 8)]
}

// shorter is limits below the job's: what a limit on GPU-minutes leaves, and those
// with which it would end before something that is planned, windows and
// reservations.
func (ex *explainer) shorter(kind *jobKind, left Time) []Time {
	var try []Time
	see := func(at Time) {
		if t := (at - ex.now) / Minute * Minute; t > 0 && t < kind.Limit {
			try = append(try, t)
		}
	}
	for _, w := range ex.s.index.Windows { // sorted below
		for _, span := range w.Spans() {
			see(span.Start)
		}
	}
	for _, res := range ex.plan.Reservations {
		see(res.At)
	}
	if left > 0 && left < kind.Limit {
		try = append(try, left)
	}
	slices.Sort(try)
	try = slices.Compact(try)
	slices.Reverse(try)
	return try[:min(len(try), 6)]
}

// smaller is the most cores and memory with which the job would find room by
// the GPUs that are free.
func (ex *explainer) smaller(kind *jobKind) (cpu, mem int64) {
	shape := kind.Shape
	if shape.MilliGPU == 0 || shape.Whole() {
		return shape.MilliCPU, shape.MemMiB
	}
	var best int64 = -1
	cpu, mem = shape.MilliCPU, shape.MemMiB
	for _, nodeKind := range ex.s.index.Order {
		gpus, why := shape.GPUsOf(nodeKind.Sample)
		if why != nodes.FitsAll {
			continue
		}
		for _, n := range nodeKind.Nodes {
			if !n.TakesJobs() || !shape.Named(n) || gpus.And(n.Free).Count() < shape.Least() || n.CPUFree < 1000 || n.MemFree < 1 {
				continue
			}
			c, m := min(n.CPUFree/1000*1000, shape.MilliCPU), min(n.MemFree, shape.MemMiB)
			if score := fixed.MulDiv(c, 1000, max(shape.MilliCPU, 1)) + fixed.MulDiv(m, 1000, max(shape.MemMiB, 1)); score > best {
				best, cpu, mem = score, c, m
			}
		}
	}
	return cpu, mem
}

// mostMemory is the most memory that is free on a node that has room for what
// else the job asks for.
func (ex *explainer) mostMemory(kind *jobKind) (most int64) {
	shape := *kind.Shape
	shape.AllMem = false
	for _, nodeKind := range ex.s.index.Order {
		f := kind.Shape.On(nodeKind)
		if !f.Now() {
			continue
		}
		for _, n := range nodeKind.Nodes {
			if _, ok := n.Room(&shape, f); ok && n.TakesJobs() && kind.Shape.Named(n) {
				most = max(most, n.MemFree)
			}
		}
	}
	return most
}
