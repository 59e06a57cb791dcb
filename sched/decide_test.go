package sched

import (
	"fmt"
	"testing"
)

func TestStartsAndReserves(t *testing.T) {
	s, err := New(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	n := Node{Name: "n1", MilliCPU: 64000, MemMiB: 1 << 18}
	for i := range 8 {
		n.GPUs = append(n.GPUs, GPU{UUID: fmt.Sprint("g", i), Model: "H100", MemMiB: 80000, NUMA: i / 4})
	}
	if err := s.SetNode(n); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		j := Job{ID: JobID(i + 1), Project: "p", User: "u", Shape: &Shape{MilliGPU: 3000, MilliCPU: 1000}, Submitted: Time(i), Limit: Hour}
		if err := s.Enqueue(j); err != nil {
			t.Fatal(err)
		}
	}
	p := Decide(Input{Now: 100, State: s})
	if len(p.Starts) != 2 || len(p.Reservations) != 3 {
		t.Fatalf("%+v", p)
	}
	for _, st := range p.Starts {
		j, _ := s.Waiting(st.Job)
		if err := s.Start(Running{Job: j, Ranks: st.Ranks, Start: 100}); err != nil {
			t.Fatal(err)
		}
	}
	p = Decide(Input{Now: 200, State: s})
	if len(p.Starts) != 0 || p.Reservations[0].At != 100+Hour || p.Reservations[2].At != 100+2*Hour {
		t.Fatalf("%+v", p)
	}
	t.Log(s.ReasonOf(&p, 3), s.ReasonOf(&p, 5))
}
