package ctld

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// lines is the audit log, oldest first, without times and ids.
func (s *testSite) lines(f client.AuditFilter) []string {
	s.t.Helper()
	l, err := s.Audit(s.t.Context(), f)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range l.Entries {
		via, _, _ := strings.Cut(e.Via, " ")
		object, _, _ := strings.Cut(e.Object, " ")
		if object != "token" {
			object = e.Object
		}
		change, _, _ := strings.Cut(e.Change, ", until")
		out = append([]string{fmt.Sprintf("%s(%s) %s %s | %s | %s | %s", e.User, e.Role, via, e.Action, object, change, e.Result)}, out...)
	}
	return out
}

// TestAudit: who changed what is known, also after a restart, and no secret is
// in it.
func TestAudit(t *testing.T) {
	const password = "hunter2-very-secret"
	s := newSite(t, func(c *site.Config) { c.Operators = byName("ops") })
	ann, ops := s.user("ann"), s.user("ops")
	req := hello(1)
	req.Job = []byte(strings.Replace(string(req.Job), "busybox:1", "bob:"+password+"@reg.example:5000/a/b:1", 1))
	if _, err := ann.Submit(t.Context(), req, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Submit(t.Context(), req, "k"); err != nil { // a repetition changes nothing
		t.Fatal(err)
	}
	if err := ann.Drain(t.Context(), "n1", api.DrainRequest{Reason: "mine"}); !client.IsCode(err, api.CodeDenied) {
		t.Fatal(err)
	}
	if _, err := ops.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	s.node("n1")
	if err := ops.Drain(t.Context(), "n1", api.DrainRequest{Reason: "fan"}); err != nil {
		t.Fatal(err)
	}
	if err := ops.Resume(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := ops.Drain(t.Context(), "n9", api.DrainRequest{Reason: "x"}); !client.IsCode(err, api.CodeNotFound) {
		t.Fatal(err)
	}
	if err := s.PutProject(t.Context(), api.Project{Name: "lab"}, true); err != nil {
		t.Fatal(err)
	}
	if err := s.PutProject(t.Context(), api.Project{Name: "lab", Shares: 2}, false); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	if _, err := s.ReloadPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"root(admin) socket POST /v1/tokens | token | for ann | ok",
		"root(admin) socket POST /v1/tokens | token | for ops | ok",
		"ann(user) token POST /v1/jobs | job 1 | submitted for project default, QUEUED | ok",
		"ann(user) token POST /v1/nodes/n1/drain |  |  | denied: only an operator may do this",
		"ops(operator) token POST /v1/jobs/actions/hold | jobs 1 | hold; 1 QUEUED -> ONHOLD | ok",
		`ops(operator) token POST /v1/nodes/n1/drain | node n1 | drained: "" -> "fan" | ok`,
		`ops(operator) token POST /v1/nodes/n1/resume | node n1 | drained: "fan (ops)" -> "" | ok`,
		`ops(operator) token POST /v1/nodes/n9/drain | node n9 | drained: "" -> "x" | refused: there is no node "n9"`,
		`root(admin) socket PUT /v1/projects/lab | project lab | new -> {"name":"lab"} | ok`,
		`root(admin) socket PUT /v1/projects/lab | project lab | {"name":"lab"} -> {"name":"lab","shares":2} | ok`,
		"root(admin) socket POST /v1/policy/reload | rules |  | ok",
	}
	got := s.lines(client.AuditFilter{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, password) {
		t.Error("a password is in the audit log")
	}
	for name, tc := range map[string]struct {
		f    client.AuditFilter
		want int
	}{
		"user": {client.AuditFilter{User: "ops"}, 4}, "object": {client.AuditFilter{Object: "n1"}, 2}, "limit": {client.AuditFilter{Limit: 3}, 3},
		"job": {client.AuditFilter{Object: "1"}, 2}, "future": {client.AuditFilter{Since: s.server.now().Add(3600e9)}, 0},
	} {
		if got := s.lines(tc.f); len(got) != tc.want {
			t.Errorf("%s: %d entries, want %d: %v", name, len(got), tc.want, got)
		}
	}
}

// TestDeniedAreFew: nobody fills the log with what they may not do.
func TestDeniedAreFew(t *testing.T) {
	s := newSite(t, nil)
	eve := s.user("eve")
	for range deniedBurst + 50 {
		if err := eve.Forget(t.Context(), "n1"); !client.IsCode(err, api.CodeDenied) {
			t.Fatal(err)
		}
	}
	n := 0
	waitFor(t, "the entries are there", func() bool {
		n = len(s.lines(client.AuditFilter{User: "eve", Limit: 1000}))
		return n >= deniedBurst
	})
	if n > deniedBurst+40 {
		t.Errorf("%d entries of %d refusals", n, deniedBurst+50)
	}
}

// TestAuditTasks: an action on some tasks of an array says which, and a refusal
// is none that was done.
func TestAuditTasks(t *testing.T) {
	s := newSite(t, nil)
	ann := s.user("ann")
	req := hello(1)
	req.Job = []byte(strings.TrimSuffix(strings.TrimSpace(string(req.Job)), "}") + `, "gbatch": {"tasks": {"indexes": "0-9"}}}`)
	if _, err := ann.Submit(t.Context(), req, "k"); err != nil {
		t.Fatal(err)
	}
	for _, ids := range []string{"1_[3-5]", "1_[30-31]"} {
		if _, err := ann.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{ids}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ann.Action(t.Context(), "pause", &api.ActionRequest{IDs: []string{"1_7"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ann(user) token POST /v1/jobs/actions/cancel | job 1 tasks 3-5 | cancel | ok",
		"ann(user) token POST /v1/jobs/actions/cancel | job 1 tasks 30-31 | cancel | refused: job 1 has no task 30-31",
		"ann(user) token POST /v1/jobs/actions/pause | job 1 tasks 7 | pause | refused: job 9 is QUEUED: only a job that runs can be paused",
	}
	if diff := cmp.Diff(want, s.lines(client.AuditFilter{User: "ann", Object: "tasks"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
