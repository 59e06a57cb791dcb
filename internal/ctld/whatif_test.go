package ctld

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// TestWhatIf asks what more nodes and other rules would be to jobs that wait, as an
// operator and as others, while the controller goes on.
func TestWhatIf(t *testing.T) {
	s := newSite(t, nil)
	s.gpuNode("n1", "GPU-a", "GPU-b")
	ann := s.user("ann")
	for range 3 {
		doc := `{"name":"train","request":{"resources":{"gpus":2,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},"scheduling":{"maxDuration":"2 hours"}}}`
		if _, err := ann.Submit(t.Context(), &api.SubmitRequest{Job: []byte(doc)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the first job has the GPUs", func() bool { return s.job("1").State != "QUEUED" })
	ask := func(in api.WhatIfRequest) *api.WhatIf {
		t.Helper()
		got, err := client.WhatIf(t.Context(), s.Client, in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	about := func(s int64, hours int64) bool { d := s - hours*3600; return -120 < d && d < 180 }
	if w := ask(api.WhatIfRequest{}); !w.Whole || w.All.Jobs != 2 || w.All.StartedBefore != 2 || !about(w.All.WaitBeforeS, 3) || len(w.Jobs) != 0 {
		t.Errorf("as things are: %+v; want 2 jobs, of which one starts in 2 and one in 4 hours", w)
	}
	w := ask(api.WhatIfRequest{AddNodes: []string{"1x2xh100"}})
	if !about(w.All.WaitAfterS, 1) || w.All.Sooner != 2 || len(w.Users) != 1 || w.Users[0].User != "ann" {
		t.Errorf("with a second node: %+v; want that one starts now and one in 2 hours", w)
	}
	if len(w.Jobs) != 2 || w.Jobs[0].Name != "train" || w.Jobs[0].Before.Sub(*w.Jobs[0].After) < time.Hour {
		t.Errorf("the jobs: %+v", w.Jobs)
	}
	ask(api.WhatIfRequest{File: true, Set: []string{"mode=fcfs"}})
	if v := s.job("2"); v.State != "QUEUED" {
		t.Errorf("a job is %s by a question", v.State)
	}

	for name, in := range map[string]api.WhatIfRequest{
		"a rule": {Set: []string{"colour=red"}}, "nodes": {AddNodes: []string{"x"}}, "many": {Set: make([]string, 21)},
	} {
		if _, err := client.WhatIf(t.Context(), s.Client, in); status(err) != http.StatusBadRequest && status(err) != http.StatusUnprocessableEntity {
			t.Errorf("%s that is not: %v", name, err)
		}
	}
	if _, err := client.WhatIf(t.Context(), ann, api.WhatIfRequest{}); status(err) != http.StatusForbidden {
		t.Errorf("a user asks: %v", err)
	}
}

func status(err error) int {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
