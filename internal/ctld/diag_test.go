package ctld

import (
	"slices"
	"testing"

	"gbatch/internal/api"
)

// TestDiag: what an operator is told of a controller that has done something.
func TestDiag(t *testing.T) {
	s := newSite(t, nil)
	for range 3 {
		if _, err := s.Submit(t.Context(), hello(1), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Explain(t.Context(), "77"); err == nil {
		t.Fatal("job 77 was explained")
	}
	d, err := s.Diag(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Turns.Count < 3 || d.Commits.Count < 3 || d.Rounds.Count < 1 || d.Records < 3 || d.Waiting != 3 || d.InboxSize != s.server.loop.Load().InboxSize || d.DiskFree == 0 || d.HeapBytes == 0 {
		t.Errorf("got %+v", d)
	}
	if d.Turns.P50MS <= 0 || d.Turns.P99MS < d.Turns.P50MS {
		t.Errorf("turns: %+v", d.Turns)
	}
	d.Routes = slices.DeleteFunc(d.Routes, func(r api.RouteUse) bool { return r.Route == "GET /openapi.json" }) // asked by the tests themselves
	if r := d.Routes[0]; r.Route != "POST /v1/jobs" || r.Count != 3 || r.Failed+r.Refused != 0 {
		t.Errorf("the most used route is %+v", r)
	}
	if r := d.Routes[1]; r.Route != "GET /v1/jobs/{id}/explain" || r.Count != 1 || r.Refused != 1 {
		t.Errorf("the next one is %+v", r)
	}
}
