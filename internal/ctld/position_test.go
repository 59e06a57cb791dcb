package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestPosition proves that a queued job is shown with its place in the queue,
// and that others, and those that are held, have none.
func TestPosition(t *testing.T) {
	s := newSite(t, nil)
	for range 3 {
		s.submit(hello(1), "")
	}
	if _, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"2"}}); err != nil {
		t.Fatal(err)
	}
	type place struct {
		state  job.State
		at, of int
	}
	for id, want := range map[string]place{"1": {job.Queued, 1, 2}, "2": {job.OnHold, 0, 0}, "3": {job.Queued, 2, 2}} {
		if d := s.job(id); (place{d.State, d.Position, d.NumQueued}) != want {
			t.Errorf("job %s is %s, %d of %d: want %v", id, d.State, d.Position, d.NumQueued, want)
		}
	}
}
