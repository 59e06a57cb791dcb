package sched

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"gbatch/accounting"
)

// load is a cluster with a queue: nodes of 8 GPUs that are full but for a few,
// and jobs of so many shapes by so many users.
type load struct{ jobs, nodes, shapes, users int }

func (l load) String() string {
	return fmt.Sprintf("jobs=%d/nodes=%d/shapes=%d/users=%d", l.jobs, l.nodes, l.shapes, l.users)
}

func (l load) state(tb testing.TB, full bool) *State {
	p := DefaultPolicy()
	p.QOS = map[string]QOS{"normal": {Priority: 100}, "high": {Priority: 900, Preempts: []string{"normal"}}}
	s, err := New(p)
	if err != nil {
		tb.Fatal(err)
	}
	models := []string{"NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"}
	for i := range l.nodes {
		n := Node{Name: fmt.Sprintf("n%04d", i), Cluster: 1 + i%2, MilliCPU: 128_000, MemMiB: 1 << 20, CUDA: 1204}
		for g := range 8 {
			n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprintf("GPU-%d-%d", i, g), Model: models[i%2], MemMiB: 81_920, ComputeCap: 80 + 10*(i%2), NUMA: g / 4})
		}
		if err := s.SetNode(n); err != nil {
			tb.Fatal(err)
		}
	}
	if full {
		l.fill(tb, s)
	}
	for i := range l.jobs {
		if err := s.Enqueue(l.job(i)); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// fill puts jobs of 1 to 8 GPUs on every node until 1 GPU in 100 is free.
func (l load) fill(tb testing.TB, s *State) {
	id := JobID(1 << 40)
	for i := range l.nodes {
		n, _ := s.Node(fmt.Sprintf("n%04d", i))
		for g := 0; g < 8; {
			k := min([]int{1, 2, 4, 8, 1, 2, 3}[(i+g)%7], 8-g)
			a := Allocation{Node: n.Name, MilliCPU: int64(k) * 14_000, MemMiB: int64(k) * 100_000}
			for range k {
				a.GPUs = append(a.GPUs, GPUShare{UUID: n.GPUs[g].UUID, Milli: 1000})
				g++
			}
			id++
			if id%64 == 0 {
				continue
			}
			shape := &Shape{MilliGPU: int64(k) * 1000, MilliCPU: a.MilliCPU, MemMiB: a.MemMiB}
			start := now0 - Time(id%97)*10*Minute
			r := Running{Job: Job{ID: id, Project: fmt.Sprint("p", id%20), User: fmt.Sprint("u", id%50), Shape: shape, Restartable: id%3 == 0}, Ranks: []Allocation{a}, Start: start, End: start + Day}
			if err := s.Start(r); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

const now0 = 2_000_000 * Minute

func (l load) job(i int) Job {
	h := uint64(i) * 0x9E3779B97F4A7C15
	k := int(h>>32) % l.shapes
	gpus := []int64{1, 2, 4, 8, 1, 3, 6, 1}[k%8]
	s := &Shape{MilliGPU: gpus * 1000, MilliCPU: gpus * int64(4000+1000*(k/8%16)), MemMiB: gpus * int64(16_384+1024*(k/128%64))}
	switch k % 11 {
	case 3:
		s.GPUModels = []string{"H100"}
	case 5:
		s.Nodes = 4
	case 7:
		s.Cluster = 1
	}
	u := int(h>>16) % l.users
	return Job{ID: JobID(i + 1), Project: fmt.Sprint("p", u%20), User: fmt.Sprint("u", u), QOS: "normal", Shape: s,
		Submitted: now0 - Time(l.jobs-i)*Second, Limit: Hour * Time(1+k%24)}
}

func (l load) shares(tb testing.TB) *accounting.Shares {
	led, err := accounting.New(accounting.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	for u := range l.users {
		c := accounting.Charge{Project: fmt.Sprint("p", u%20), User: fmt.Sprint("u", u), MilliGPU: int64(u*37%100) * 1000, Start: 0, End: int64(now0)}
		if err := led.Add(c); err != nil {
			tb.Fatal(err)
		}
	}
	return led.Shares(int64(now0))
}

func loads() []load {
	var out []load
	for _, jobs := range []int{1_000, 10_000, 100_000, 1_000_000} {
		for _, nodes := range []int{100, 1_000, 5_000} {
			out = append(out, load{jobs, nodes, 8, 10}, load{jobs, nodes, 1_000, 200})
		}
	}
	return out
}

// cpuTime of the process, all threads: what a round costs where other work on
// the machine makes wall time say little.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkRound is one round on a cluster that is nearly full.
func BenchmarkRound(b *testing.B) {
	for _, l := range loads() {
		b.Run(l.String(), func(b *testing.B) {
			if l.jobs > 100_000 && testing.Short() {
				b.Skip("a million jobs take a while to queue; run without -short")
			}
			in := Input{Now: now0, State: l.state(b, true), Shares: l.shares(b)}
			var p Plan
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				p = Decide(in)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(p.Stats.Classes), "classes")
			b.ReportMetric(float64(len(p.Starts)), "starts")
			b.ReportMetric(float64(p.Stats.Searches), "searches")
			b.ReportMetric(float64(p.Stats.Visited), "visited")
		})
	}
}

// BenchmarkFullCluster is one round when little has changed: all GPUs are taken but
// those of 20 jobs that have ended.
func BenchmarkFullCluster(b *testing.B) {
	for _, l := range []load{{100_000, 5_000, 8, 10}, {100_000, 5_000, 1_000, 200}, {1_000_000, 20_000, 8, 10}, {1_000_000, 20_000, 1_000, 200}} {
		b.Run(l.String(), func(b *testing.B) {
			if l.jobs > 100_000 && testing.Short() {
				b.Skip("a million jobs take a while to queue; run without -short")
			}
			in := Input{Now: now0, State: l.state(b, true), Shares: l.shares(b)}
			for starts := Decide(in).Starts; len(starts) > 0; starts = Decide(in).Starts {
				for _, st := range starts {
					if err := in.State.Start(Running{Job: l.job(int(st.Job) - 1), Ranks: st.Ranks, Start: now0, End: now0 + Day}); err != nil {
						b.Fatal(err)
					}
				}
			}
			for id, ended := JobID(1<<40), 0; ended < 20; id += 101 {
				if in.State.End(id) {
					ended++
				}
			}
			var p Plan
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				p = Decide(in)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(len(p.Starts)), "starts")
		})
	}
}

// BenchmarkEmptyCluster is the first round on a cluster on which nothing runs:
// it starts as many jobs as one round may.
func BenchmarkEmptyCluster(b *testing.B) {
	l := load{100_000, 1_000, 1_000, 200}
	in := Input{Now: now0, State: l.state(b, false), Shares: l.shares(b)}
	var p Plan
	before := cpuTime()
	for b.Loop() {
		p = Decide(in)
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
	b.ReportMetric(float64(len(p.Starts)), "starts")
}

// BenchmarkOneGo places 64,000 jobs of one core on 1,000 empty nodes of 64 cores in
// one round.
func BenchmarkOneGo(b *testing.B) {
	const nodes, perNode = 1_000, 64
	p := DefaultPolicy()
	p.MaxStarts, p.MaxEvaluated = nodes*perNode, nodes*perNode
	s, err := New(p)
	if err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		if err := s.SetNode(Node{Name: fmt.Sprintf("n%04d", i), Cluster: 1, MilliCPU: perNode * 1000, MemMiB: 512 << 10}); err != nil {
			b.Fatal(err)
		}
	}
	l := load{jobs: nodes * perNode, shapes: 1, users: 200}
	for i := range l.jobs {
		j := l.job(i)
		j.Shape = &Shape{MilliCPU: 1000, MemMiB: 4096}
		if err := s.Enqueue(j); err != nil {
			b.Fatal(err)
		}
	}
	in := Input{Now: now0, State: s, Shares: l.shares(b)}
	before := cpuTime()
	for b.Loop() {
		if n := len(Decide(in).Starts); n != l.jobs {
			b.Fatalf("%d of %d jobs are placed", n, l.jobs)
		}
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
}

// BenchmarkQueuedBytes is the heap that a waiting job costs.
func BenchmarkQueuedBytes(b *testing.B) {
	for _, l := range []load{{100_000, 1, 8, 10}, {100_000, 1, 1_000, 200}, {1_000_000, 1, 8, 10}} {
		b.Run(l.String(), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				empty := load{0, 1, 8, 10}.state(b, false)
				jobs := make([]Job, l.jobs)
				for i := range jobs {
					jobs[i] = l.job(i)
				}
				runtime.GC()
				runtime.ReadMemStats(&before)
				for _, j := range jobs {
					if err := empty.Enqueue(j); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(l.jobs), "B/job")
				runtime.KeepAlive(jobs)
				runtime.KeepAlive(empty)
			}
		})
	}
}

// BenchmarkEnqueue is one job in and out of a long queue.
func BenchmarkEnqueue(b *testing.B) {
	l := load{100_000, 1, 1_000, 200}
	s := l.state(b, false)
	j := l.job(l.jobs + 1)
	for b.Loop() {
		if err := s.Enqueue(j); err != nil {
			b.Fatal(err)
		}
		s.Dequeue(j.ID)
	}
}

// BenchmarkShared is a round with jobs that wait whose ranks share nodes, of two groups, on a
// cluster in which all but a few GPUs are taken by jobs that end one after the other.
func BenchmarkShared(b *testing.B) {
	const count, each, jobs = 1_000, 8, 200
	s, err := New(DefaultPolicy())
	if err != nil {
		b.Fatal(err)
	}
	for i := range count {
		n := Node{Name: fmt.Sprint("n", i), Cluster: 1, MilliCPU: 64_000, MemMiB: 1 << 19}
		for g := range each {
			n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint(n.Name, "-", g), Model: "H100", MemMiB: 81920})
		}
		if err := s.SetNode(n); err != nil {
			b.Fatal(err)
		}
		var held []GPUShare
		for _, g := range n.GPUs[i%2:] {
			held = append(held, GPUShare{UUID: g.UUID, Milli: 1000})
		}
		run := Running{Job: Job{ID: JobID(i + 1), Project: "p", User: "u", Shape: &Shape{MilliCPU: 8000, MilliGPU: int64(len(held)) * 1000}, Limit: Time(1+i) * Minute},
			Ranks: []Allocation{{Node: n.Name, MilliCPU: 8000, GPUs: held}}, Start: now0 - Minute}
		if err := s.Start(run); err != nil {
			b.Fatal(err)
		}
	}
	for i := range jobs {
		shape := &Shape{MilliCPU: 1000 + int64(i)*10, PerNode: 2000, Groups: []Group{{Nodes: 501 + i, MilliCPU: 1000, MilliGPU: 1000}}}
		if err := s.Enqueue(Job{ID: JobID(count + i + 1), Project: "p", User: "u", Shape: shape, Submitted: now0 - Minute, Limit: Hour}); err != nil {
			b.Fatal(err)
		}
	}
	var p Plan
	before := cpuTime()
	for b.Loop() {
		p = Decide(Input{Now: now0, State: s})
	}
	b.ReportMetric(float64(cpuTime()-before)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(len(p.Reservations)), "reservations")
}
