package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"gbatch/accounting"
)

// TestTenfoldBacklog: one user who has ten times as many jobs waiting, by the rules
// of a new site, gets no more of the machine than before, and the others no less.
func TestTenfoldBacklog(t *testing.T) {
	alike := map[string]int{"ann": 8, "bob": 8, "eve": 8, "kim": 8}
	before := usedUnder(t, alike)
	ten := maps.Clone(alike)
	ten["ann"] *= 10
	after := usedUnder(t, ten)
	for user, had := range before {
		if got := after[user]; got < had*98/100 || got > had*102/100 {
			t.Errorf("%s used %d GPU-hours, and %d when ann has ten times as many jobs", user, had, got)
		}
	}
}

// usedUnder is the GPU-hours of users in the second half of 400 hours on 8 GPUs, if
// each always has so many jobs of an hour waiting.
func usedUnder(t *testing.T, waiting map[string]int) map[string]int {
	t.Helper()
	ledger, err := accounting.New(accounting.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(DefaultPolicy())
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
	feed := func(user string) {
		next++
		if err := s.Enqueue(Job{ID: next, Project: "default", User: user, Shape: shape, Submitted: now, Limit: Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range slices.Sorted(maps.Keys(waiting)) {
		for range waiting[user] {
			feed(user)
		}
	}
	used := map[string]int{}
	for hour := range 400 {
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
			if hour >= 200 {
				used[j.User]++
			}
			feed(j.User)
		}
		now += Hour
	}
	return used
}
