package sched

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFewerLicenses: a job that waits for licences is told with how many it would start
// now, and with how many sooner than with all.
func TestFewerLicenses(t *testing.T) {
	p := DefaultPolicy()
	p.Licenses = map[string]int64{"ansys": 6}
	for name, tc := range map[string]struct {
		held, asks int64
		want       string
	}{
		"some are free":       {held: 4, asks: 3, want: "ask for 2 ansys licences, now"},
		"none are free":       {held: 6, asks: 3, want: "none"},
		"more than there are": {held: 0, asks: 9, want: "ask for 6 ansys licences, now"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetNode(Node{Name: "n1", MilliCPU: 64_000, MemMiB: 65_536}); err != nil {
				t.Fatal(err)
			}
			ask := func(id JobID, n int64) Job {
				return Job{ID: id, User: "ann", Project: "lab", Limit: Hour, Shape: &Shape{MilliCPU: 1000, MemMiB: 1024, Licenses: []License{{Name: "ansys", Count: n}}}}
			}
			in := Input{State: s, Now: Hour}
			if tc.held > 0 {
				if err := s.Enqueue(ask(1, tc.held)); err != nil {
					t.Fatal(err)
				}
				for _, st := range Decide(in).Starts {
					j, _ := s.Waiting(st.Job)
					if err := s.Start(Running{Job: j, Ranks: st.Ranks, Start: in.Now, End: in.Now + Hour}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Enqueue(ask(2, tc.asks)); err != nil {
				t.Fatal(err)
			}
			got := "none"
			for _, a := range Advise(in, 2) {
				if a.Code == "fewer-licenses" {
					got = a.Change + map[bool]string{true: ", now", false: fmt.Sprintf(", at %d", a.At)}[a.Now]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}
