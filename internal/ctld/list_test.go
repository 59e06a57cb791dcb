package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// TestListWhereItIs: a job is found in the cluster where it is, which it need not
// have asked for; those that wait come with their priorities, if asked for.
func TestListWhereItIs(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1") // 8 cores of cluster 1
	for _, cpus := range []int{8, 4} {
		if _, err := s.Submit(t.Context(), hello(cpus), ""); err != nil {
			t.Fatal(err)
		}
	}
	n.sync(nil)
	found := func(f client.JobFilter) (numbers []job.Number) {
		t.Helper()
		l, err := s.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range l.Jobs {
			numbers = append(numbers, j.Number)
			if want := f.Factors && j.State == job.Queued; (j.Factors != nil) != want {
				t.Errorf("job %d is %s and has the factors %v", j.Number, j.State, j.Factors)
			}
		}
		return numbers
	}
	if got := found(client.JobFilter{Cluster: 1}); len(got) != 1 || got[0] != 1 {
		t.Errorf("in cluster 1 are %v", got)
	}
	if got := found(client.JobFilter{Cluster: 2}); len(got) != 0 {
		t.Errorf("in cluster 2 are %v", got)
	}
	if got := found(client.JobFilter{Factors: true}); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
	if got := found(client.JobFilter{QOS: "none"}); len(got) != 0 {
		t.Errorf("of QOS none are %v", got)
	}
	r, err := s.Action(t.Context(), "cancel", &api.ActionRequest{Cluster: 1})
	if err != nil || len(r.Results) != 1 || r.Results[0].Number != 1 {
		t.Errorf("a cancel of cluster 1: %+v, %v", r, err)
	}
}
