package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

func (s *testSite) act(action string, ids ...string) []api.ActionResult {
	s.t.Helper()
	r, err := s.Action(s.t.Context(), action, &api.ActionRequest{IDs: ids})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Results
}

// TestDependencies: what a job waits for is known in the table, in history and
// over a restart, is told, and is refused where there is no such job.
func TestDependencies(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Keep.Count = 1 })
	after := func(dep string) *api.SubmitRequest {
		r := hello(1)
		r.Dependency = dep
		return r
	}
	first := s.submit(hello(1), "")
	s.act("cancel", "1")
	s.submit(hello(1), "")
	s.act("cancel", "2")
	s.node("n1") // not before: a job that was assigned would have to be stopped first
	s.stop()
	s.start()
	if d := s.job("1"); d.State != job.Cancelled {
		t.Fatalf("job 1 is %s", d.State)
	}
	if r := s.submit(after("afternotok:1,afterany:"+first.UUID), ""); r.State != job.Queued {
		t.Errorf("a job after one in history is %s", r.State)
	}
	if r := s.submit(after("afterok:1"), ""); r.State != job.Cancelled {
		t.Errorf("a job after one in history that failed is %s", r.State)
	}
	if d := s.job("4"); d.Reason != string(job.DependencyFailed) {
		t.Errorf("it was cancelled with %q", d.Reason)
	}
	s.submit(after("afterok:3"), "")
	s.stop()
	s.start()
	d := s.job("5")
	if d.Reason != "Dependency" || d.Dependency != "afterok:3" || d.ReasonText != "waits for job 3 to finish well" {
		t.Errorf("job 5 waits for %q: %s: %s", d.Dependency, d.Reason, d.ReasonText)
	}
	e, err := s.Explain(t.Context(), "5")
	if err != nil || len(e.Reasons) == 0 || e.Reasons[0].Code != "Dependency" || e.Estimate == nil || !e.Estimate.At.IsZero() {
		t.Errorf("explained as %+v, %v", e, err)
	}
	for _, dep := range []string{"afterok:99", "afterok:123456abcd", "afterok:3_1"} {
		if _, err := s.Submit(t.Context(), after(dep), ""); err == nil {
			t.Errorf("%s was taken", dep)
		}
	}
	if _, err := s.Submit(t.Context(), after("afterwards:3"), ""); !client.IsCode(err, api.CodeInvalidJob) {
		t.Errorf("an unknown type: %v", err)
	}
}
