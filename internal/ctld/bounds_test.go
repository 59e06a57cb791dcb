package ctld

import (
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// TestLongPollsOfOneUser: who has too many long polls open is told so at the next
// request, while others, and nodes, are answered; when one ends there is room.
func TestLongPollsOfOneUser(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Limits.PerUser.Requests = 3 })
	ann, m := s.user("ann"), s.joined("n1")
	made, err := ann.Submit(t.Context(), hello(1), "")
	if err != nil {
		t.Fatal(err)
	}
	version := s.job("1").Version
	done := make(chan error, 3)
	for range 3 {
		go func() { // ends when the job changes, below
			_, err := ann.Job(t.Context(), "1", client.JobOptions{Wait: 2 * time.Minute, Version: version})
			done <- err
		}()
	}
	waitFor(t, "all polls are open", func() bool { return s.server.loop.Jobs.Waiting(made.Number) == 3 })
	if _, err := ann.Status(t.Context()); !client.IsCode(err, api.CodeTooMany) {
		t.Errorf("her fourth request: %v", err)
	}
	if _, err := s.user("bob").Status(t.Context()); err != nil {
		t.Errorf("another user: %v", err)
	}
	if _, err := m.NodeSync(t.Context(), "n1", m.hello()); err != nil {
		t.Errorf("a node: %v", err)
	}
	if _, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := ann.Status(t.Context()); err != nil {
		t.Errorf("when they have ended: %v", err)
	}
}
