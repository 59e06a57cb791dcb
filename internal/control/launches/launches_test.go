package launches

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

func jobOf(l *state.Launches) *state.Job {
	return &state.Job{Number: 7, Attempt: &state.Attempt{Attempt: 2, Ranks: make([]state.Rank, 2), Launches: l}}
}

// TestRecordsAreBounded: a script that starts steps for ever leaves the records of
// the last thousand, and only the first thousand add to them.
func TestRecordsAreBounded(t *testing.T) {
	var l *state.Launches
	kept, grown := map[uint64]bool{}, int64(0)
	for n := range 5000 {
		s := Of(jobOf(l))
		number, more, refusal := s.Begin(1, state.Launch{Key: fmt.Sprint(n), Ranks: []int{0, 1}})
		if refusal != nil || number != uint32(n) {
			t.Fatalf("step %d is %d: %v", n, number, refusal)
		}
		s.End(2, End{Number: number, Code: 3})
		grown += more
		for _, r := range s.Records {
			if kept[r.Seq] = true; r.Value == nil {
				delete(kept, r.Seq)
			}
		}
		l = &s.Launches
	}
	if len(kept) != maxKept || grown != maxKept || len(l.Running) != 0 {
		t.Errorf("%d records are kept, counted as %d; %d steps run", len(kept), grown, len(l.Running))
	}
}

// TestLaunches: a step is begun once for each key, ended once, and cancelled while
// it runs.
func TestLaunches(t *testing.T) {
	s := Of(jobOf(nil))
	one, _, _ := s.Begin(1, state.Launch{Key: "a"})
	again, more, _ := s.Begin(2, state.Launch{Key: "a"})
	if one != 0 || again != 0 || more != 0 || s.Next != 1 {
		t.Errorf("a key is steps %d and %d", one, again)
	}
	if _, _, refusal := s.Begin(1, state.Launch{Key: "b", Ranks: []int{2}}); refusal == nil {
		t.Error("a step on a rank that the job has not was begun")
	}
	if _, _, refusal := s.Begin(1, state.Launch{Key: "b", Ranks: []int{0, 1, 0}}); refusal == nil {
		t.Error("a step on more ranks than the job has was begun")
	}
	said := func(n uint32) string {
		text, asked, refusal := s.Cancel(n, "ann")
		return fmt.Sprintf("%s %t %t", text, asked, refusal != nil)
	}
	got := []string{said(0), said(0), said(1)}
	canceled := s.End(3, End{Number: 0, Code: 143, Signal: 15})
	got = append(got, said(0))
	want := []string{"step is being cancelled true false", "step is being cancelled already false false", " false true", "step has ended already false false"}
	if diff := cmp.Diff(want, got); diff != "" || !canceled {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := range maxRunning {
		if _, _, refusal := s.Begin(1, state.Launch{Key: fmt.Sprint("open", n)}); refusal != nil {
			t.Fatal(refusal)
		}
	}
	if _, _, refusal := s.Begin(1, state.Launch{Key: "one more"}); refusal == nil {
		t.Error("there is no bound of steps that run")
	}
	if s.EndAll(9); len(s.Running) != 0 {
		t.Error("steps run on that were ended")
	}
}

// Steps end for want of memory with a container that did, and the others as killed.
func TestEndAllOutOfMemory(t *testing.T) {
	j := &state.Job{Number: 7, Attempt: &state.Attempt{Attempt: 1, Ranks: []state.Rank{{}, {Exit: &node.Exit{Code: 137, Reason: job.OOM}}}}}
	s := Of(j)
	for i, on := range [][]int{{0}, {0, 1}} {
		if _, _, refusal := s.Begin(1, state.Launch{Key: fmt.Sprint(i), Ranks: on}); refusal != nil {
			t.Fatal(refusal)
		}
	}
	s.EndAll(9)
	var got []string
	for _, r := range s.Records[2:] {
		var l state.Launch
		if err := json.Unmarshal(r.Value, &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(l.Number, l.Code, l.Signal, l.OOM))
	}
	if diff := cmp.Diff([]string{"0 137 9 false", "1 137 9 true"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
