package ctld

import (
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// TestLongTimeline: of a job that was held and released without end, the last lines
// are shown.
func TestLongTimeline(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	const times = 600
	for range times {
		for _, action := range []string{"hold", "release"} {
			if _, err := s.Action(t.Context(), action, &api.ActionRequest{IDs: []string{"1"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := s.job("1")
	if n := len(d.Events); n != 1000 || d.Events[n-1].Message != "released by root" || d.Events[0].Message == "submitted" {
		t.Errorf("%d lines, from %+v", n, d.Events[0])
	}
}

// TestManyAnswersAtOnce: many long polls on one job that change together are all
// answered, few at a time.
func TestManyAnswersAtOnce(t *testing.T) {
	s := newSite(t, nil)
	ann := s.user("ann")
	made, err := ann.Submit(t.Context(), hello(1), "")
	if err != nil {
		t.Fatal(err)
	}
	const polls = 200
	version := s.job("1").Version
	done := make(chan error, polls)
	for range polls {
		go func() { // ends when the job changes, below
			d, err := ann.Job(t.Context(), "1", client.JobOptions{Wait: 2 * time.Minute, Version: version})
			if err == nil && d.Version == version {
				t.Error("an answer has the old version")
			}
			done <- err
		}()
	}
	waitFor(t, "all polls are open", func() bool { return s.server.loop.Jobs.Waiting(made.Number) == polls })
	if _, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	for range polls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
