package sched

import (
	"strings"
	"testing"
)

type badInput struct {
	name string
	do   func(*State) error
	want string // in the error
}

func badRun(edit func(*Running)) func(*State) error {
	return func(s *State) error {
		r := Running{Job: Job{ID: 1, Shape: &Shape{MilliGPU: 1000}, Limit: Hour},
			Ranks: []Allocation{{Node: "n", GPUs: []GPUShare{{UUID: "a", Milli: 1000}}, MilliCPU: 1000}}}
		edit(&r)
		return s.Start(r)
	}
}

func badJob(edit func(*Job)) func(*State) error {
	return func(s *State) error {
		j := Job{ID: 1, Shape: &Shape{MilliGPU: 1000}, Limit: Hour}
		edit(&j)
		return s.Enqueue(j)
	}
}

func badPolicy(edit func(*Policy)) func(*State) error {
	return func(s *State) error { p := DefaultPolicy(); edit(&p); return s.SetPolicy(p) }
}

var badInputs = []badInput{
	{"negative-weight", badPolicy(func(p *Policy) { p.Weights.Age = -1 }), "weights.age is -1"},
	{"absurd-weight", badPolicy(func(p *Policy) { p.Weights.FairShare = 1 << 60 }), "weights.fairShare"},
	{"zero-max-age", badPolicy(func(p *Policy) { p.MaxAge = 0 }), "maxAgeMs is 0"},
	{"unknown-mode", badPolicy(func(p *Policy) { p.Mode = "best" }), `mode is "best"`},
	{"negative-limit", badPolicy(func(p *Policy) { p.Users = map[string]Limits{"u": {Running: -1}} }), "users.u"},
	{"mutual-preemption", badPolicy(func(p *Policy) {
		p.QOS = map[string]QOS{"a": {Preempts: []string{"b"}}, "b": {Preempts: []string{"a"}}}
	}), "preempt each other"},
	{"unknown-qos", badPolicy(func(p *Policy) { p.QOS = map[string]QOS{"a": {Preempts: []string{"x"}}} }), `names "x"`},
	{"bad-mix", badPolicy(func(p *Policy) { p.Mix = []MixShape{{Shape: Shape{MilliGPU: -1}, Weight: 1}} }), "mix[0].shape"},
	{"no-shape", badJob(func(j *Job) { j.Shape = nil }), "shape is missing"},
	{"nothing", badJob(func(j *Job) { j.Shape.MilliGPU = 0 }), "asks for nothing"},
	{"half-more", badJob(func(j *Job) { j.Shape.MilliGPU = 1500 }), "milliGpu is 1500"},
	{"negative-gpus", badJob(func(j *Job) { j.Shape.MilliGPU = -1000 }), "milliGpu is -1000"},
	{"huge-cpu", badJob(func(j *Job) { j.Shape.MilliCPU = 1 << 62 }), "milliCpu"},
	{"negative-limit-time", badJob(func(j *Job) { j.Limit = -1 }), "limit is -1"},
	{"priority", badJob(func(j *Job) { j.Priority = 1 << 40 }), "priority"},
	{"window-backwards", func(s *State) error { return s.Reserve(Window{Name: "w", Start: 2, End: 1, Count: 1}) }, "end after the start"},
	{"window-too-large", func(s *State) error { return s.Reserve(Window{Name: "w", Start: 1, End: 2, Count: 9}) }, "wants 9 nodes"},
	{"node-twice-a-gpu", func(s *State) error { return s.SetNode(Node{Name: "m", GPUs: []GPU{{UUID: "x"}, {UUID: "x"}}}) }, `the UUID "x"`},
	{"node-negative", func(s *State) error { return s.SetNode(Node{Name: "m", MilliCPU: -1}) }, "-1 milli CPU"},
	{"start-unknown-node", badRun(func(r *Running) { r.Ranks = []Allocation{{Node: "x", MilliCPU: 1}} }), `node "x" is not known`},
	{"start-unknown-gpu", badRun(func(r *Running) { r.Ranks = []Allocation{{Node: "n", GPUs: []GPUShare{{UUID: "z", Milli: 1000}}}} }), "reports no GPU z"},
	{"start-same-gpu-twice", badRun(func(r *Running) {
		r.Ranks = []Allocation{{Node: "n", GPUs: []GPUShare{{UUID: "a", Milli: 600}, {UUID: "a", Milli: 600}}}}
	}), "held already"},
	{"start-too-much-cpu", badRun(func(r *Running) { r.Ranks = []Allocation{{Node: "n", MilliCPU: 9000}} }), "8000 milli CPU"},
}

func TestBadInputIsRefused(t *testing.T) {
	for _, tc := range badInputs {
		t.Run(tc.name, func(t *testing.T) {
			s, err := New(DefaultPolicy())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetNode(Node{Name: "n", MilliCPU: 8000, MemMiB: 8192, GPUs: []GPU{{UUID: "a"}, {UUID: "b"}}}); err != nil {
				t.Fatal(err)
			}
			err = tc.do(s)
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
	if err := s.Start(Running{Job: Job{ID: 1, Shape: shape}, Ranks: []Allocation{{Node: "n", MilliCPU: 8000, GPUs: []GPUShare{{UUID: "a", Milli: 1000}, {UUID: "b", Milli: 1000}}}}, Start: 1000}); err != nil {
		t.Fatal(err)
	}
	small := full
	small.GPUs, small.MilliCPU = full.GPUs[:1], 4000
	set(small)
	if n := s.index.Nodes["n"]; n.CPUFree >= 0 {
		t.Errorf("the node that shrank has %d milli CPU free, with 8000 held of 4000", n.CPUFree)
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

func TestQueueLimitsAreToldBeforeSubmit(t *testing.T) {
	p := DefaultPolicy()
	p.Project = Limits{Queued: 3}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	j := Job{ID: 1, Project: "p", User: "u", Shape: &Shape{MilliCPU: 1000}}
	if err := s.Enqueue(j); err != nil {
		t.Fatal(err)
	}
	if r, ok := s.MayQueue(j, 2, nil); !ok {
		t.Errorf("2 more of 3 are refused: %v", r)
	}
	if r, ok := s.MayQueue(j, 2, []Outside{{Project: "p", Jobs: 1}, {Project: "q", Jobs: 5}}); ok || r.Text != "project p has 2 of 3 queued jobs" {
		t.Errorf("two more beside one outside: %t %q", ok, r.Text)
	}
	if r, ok := s.MayQueue(j, 3, nil); ok || r.Text != "project p has 1 of 3 queued jobs" {
		t.Errorf("3 more of 3: allowed %t, %v", ok, r)
	}
}
