package sched

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBehindALimit: of jobs that wait for a limit of their user the first is told when it
// starts, and those behind it that they do not start before.
func TestBehindALimit(t *testing.T) {
	p := DefaultPolicy()
	p.User = Limits{Running: 1}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetNode(Node{Name: "n1", MilliCPU: 64_000, MemMiB: 65_536}); err != nil {
		t.Fatal(err)
	}
	submit := func(id JobID, user string) {
		t.Helper()
		j := Job{ID: id, User: user, Project: "lab", Limit: Hour, Submitted: Time(id), Shape: &Shape{MilliCPU: 1000, MemMiB: 1024}}
		if err := s.Enqueue(j); err != nil {
			t.Fatal(err)
		}
	}
	submit(1, "ann")
	in := Input{State: s, Now: Hour}
	for _, st := range Decide(in).Starts {
		j, _ := s.Waiting(st.Job)
		if err := s.Start(Running{Job: j, Ranks: st.Ranks, Start: in.Now, End: in.Now + Hour}); err != nil {
			t.Fatal(err)
		}
	}
	submit(2, "ann")
	submit(3, "ann")
	submit(4, "bob")
	got := map[JobID]string{}
	for id := JobID(2); id <= 4; id++ {
		e := Explain(in, id).Estimate
		got[id] = fmt.Sprintf("at %d, now %t, at least %t", e.At/Minute, e.Now, e.AtLeast)
	}
	want := map[JobID]string{2: "at 120, now false, at least false", 3: "at 120, now false, at least true", 4: "at 60, now true, at least false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("estimates (-want +got):\n%s", diff)
	}
}
