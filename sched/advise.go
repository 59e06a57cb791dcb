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
	x := newExplainer(in)
	now := x.estimate(e)
	tries := x.changes(e, job)
	x.close()
	if now.Now {
		return nil
	}
	var out []Advice
	for _, a := range tries[:min(len(tries), maxAdvice)] {
		est, err := tryJob(in, a.Job)
		if err != nil || !est.Known || now.Known && est.At >= now.At {
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
	x := newExplainer(in)
	defer x.close()
	return x.estimate(in.State.waiting[j.ID]), nil
}

// changes is what is worth a try, of each kind the smallest change first.
func (x *explainer) changes(e *entry, job Job) []Advice {
	var out []Advice
	add := func(code, change string, edit func(*Job, *Shape)) {
		j, s := job, *job.Shape
		edit(&j, &s)
		j.Shape = &s
		out = append(out, Advice{Code: code, Change: change, Job: j})
	}
	k := e.class.kind
	for _, n := range x.fewer(k) {
		add("fewer-gpus", fmt.Sprintf("ask for %d GPUs", n), func(_ *Job, s *Shape) { s.MilliGPU = n * WholeGPU })
	}
	for _, t := range x.shorter(k) {
		add("shorter-limit", "limit the run time to "+words.Span(t), func(j *Job, _ *Shape) { j.Limit, j.Predicted = t, min(j.Predicted, t) })
	}
	s := k.Shape
	if len(s.Models) > 0 {
		for _, m := range x.s.index.Models() {
			if !slices.Contains(s.GPUModels, m) {
				add("other-model", "ask for "+m, func(_ *Job, s *Shape) { s.GPUModels = []string{m} })
			}
		}
	}
	if cpu, mem := x.smaller(k); cpu < s.MilliCPU || mem < s.MemMiB {
		add("less-cpu-memory", fmt.Sprintf("ask for %s cores and %s GiB", words.Thousandths(cpu), words.GiB(mem)),
			func(_ *Job, s *Shape) { s.MilliCPU, s.MemMiB = cpu, mem })
	}
	if g := s.WholeGPUs(); s.Ranks() == 1 && !s.Whole() && g > 1 && g%2 == 0 {
		add("split", fmt.Sprintf("ask for 2 nodes with %d GPUs each", g/2), func(_ *Job, s *Shape) {
			s.Nodes, s.MilliGPU, s.MilliCPU, s.MemMiB = 2, s.MilliGPU/2, (s.MilliCPU+1)/2, (s.MemMiB+1)/2
		})
	}
	if s.Only != nil {
		add("any-node", "name no node", func(_ *Job, s *Shape) { s.Node, s.NodeNames = "", nil })
	}
	if len(s.ExcludeNodes) > 0 {
		add("no-exclusions", "exclude no node", func(_ *Job, s *Shape) { s.ExcludeNodes = nil })
	}
	if s.Cluster != 0 {
		add("any-cluster", "name no cluster", func(_ *Job, s *Shape) { s.Cluster = 0 })
	}
	if s.Exclusive {
		add("not-exclusive", "share the node", func(_ *Job, s *Shape) { s.Exclusive = false })
	}
	for i, f := range s.Features {
		add("fewer-features", fmt.Sprintf("do without the feature %q", f), func(_ *Job, s *Shape) {
			s.Features = slices.Delete(slices.Clone(s.Features), i, i+1)
		})
	}
	for i, any := range s.AnyFeatures {
		add("fewer-features", "do without the feature "+words.OrList(any), func(_ *Job, s *Shape) {
			s.AnyFeatures = slices.Delete(slices.Clone(s.AnyFeatures), i, i+1)
		})
	}
	return out
}

// fewer is numbers of GPUs below what is asked: what is free on some node, a
// half, one.
func (x *explainer) fewer(k *jobKind) []int64 {
	asked := int64(k.Shape.WholeGPUs())
	if asked <= 1 || k.Shape.Whole() {
		return nil
	}
	try := []int64{asked / 2, 1}
	for _, nk := range x.s.index.Order {
		f := k.Shape.On(nk)
		gpus, _ := k.Shape.GPUsOf(nk.Sample)
		if c := int64(gpus.Count()); c < asked {
			try = append(try, c)
		}
		if !f.OK {
			continue
		}
		for _, n := range nk.Nodes {
			if n.Open() && k.Shape.Named(n) {
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

// shorter is limits below the job's with which it would end before something
// that is planned: windows and reservations.
func (x *explainer) shorter(k *jobKind) []Time {
	var try []Time
	see := func(at Time) {
		if t := (at - x.now) / Minute * Minute; t > 0 && t < k.Limit {
			try = append(try, t)
		}
	}
	for _, w := range x.s.index.Windows { // sorted below
		see(w.Start)
	}
	for _, res := range x.plan.Reservations {
		see(res.At)
	}
	slices.Sort(try)
	try = slices.Compact(try)
	slices.Reverse(try)
	return try[:min(len(try), 6)]
}

// smaller is the most cores and memory with which the job would find room by
// the GPUs that are free.
func (x *explainer) smaller(k *jobKind) (cpu, mem int64) {
	s := k.Shape
	if s.MilliGPU == 0 || s.Whole() {
		return s.MilliCPU, s.MemMiB
	}
	var best int64 = -1
	cpu, mem = s.MilliCPU, s.MemMiB
	for _, nk := range x.s.index.Order {
		gpus, why := s.GPUsOf(nk.Sample)
		if why != nodes.FitsAll {
			continue
		}
		for _, n := range nk.Nodes {
			if !n.Open() || !s.Named(n) || gpus.And(n.Free).Count() < s.Least() || n.CPUFree < 1000 || n.MemFree < 1 {
				continue
			}
			c, m := min(n.CPUFree/1000*1000, s.MilliCPU), min(n.MemFree, s.MemMiB)
			if score := fixed.MulDiv(c, 1000, max(s.MilliCPU, 1)) + fixed.MulDiv(m, 1000, max(s.MemMiB, 1)); score > best {
				best, cpu, mem = score, c, m
			}
		}
	}
	return cpu, mem
}
