package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// TestHoldOfOperator: what an operator holds its user does not release, but what an
// operator holds as the user.
func TestHoldOfOperator(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Operators = byName("ops") })
	ann, ops := s.user("ann"), s.user("ops")
	if _, err := ann.Submit(t.Context(), hello(1), ""); err != nil {
		t.Fatal(err)
	}
	act := func(who string, action string) *api.ActionResult {
		t.Helper()
		r, err := s.user(who).Action(t.Context(), action, &api.ActionRequest{IDs: []string{"1"}})
		if err != nil {
			t.Fatal(err)
		}
		return &r.Results[0]
	}
	act("ops", "hold")
	if r := act("ann", "release"); r.Error == nil || r.Error.Code != api.CodeDenied || !strings.Contains(r.Error.Error(), "held by ops") {
		t.Errorf("ann's release was answered %+v", r)
	}
	e, err := ann.Explain(t.Context(), "1")
	if err != nil || len(e.Reasons) != 1 || e.Reasons[0].Code != "JobHeldAdmin" || !strings.Contains(e.Reasons[0].Text, "held by ops, an operator") {
		t.Errorf("ann's job is explained by %+v, %v", e, err)
	}
	act("ops", "uhold")
	if r := act("ann", "release"); r.After != job.Queued {
		t.Errorf("ann's release of what was held as she would was answered %+v", r)
	}
	act("ann", "hold")
	act("ops", "hold")
	if l, err := ops.Job(t.Context(), "1", client.JobOptions{}); err != nil || l.Reason != "JobHeldAdmin" {
		t.Errorf("a hold that was taken over is shown as %+v, %v", l, err)
	}
	if r := act("ops", "release"); r.After != job.Queued {
		t.Errorf("ops's release was answered %+v", r)
	}
}
