package ctld

import (
	"fmt"
	"slices"
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
	if _, err := ann.Drain(t.Context(), "n1", api.DrainRequest{Reason: "mine"}); !client.IsCode(err, api.CodeDenied) {
		t.Fatal(err)
	}
	if _, err := ops.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	s.node("n1")
	if _, err := ops.Drain(t.Context(), "n1", api.DrainRequest{Reason: "fan"}); err != nil {
		t.Fatal(err)
	}
	if err := ops.Resume(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Drain(t.Context(), "n9", api.DrainRequest{Reason: "x"}); !client.IsCode(err, api.CodeNotFound) {
		t.Fatal(err)
	}
	if _, err := s.PutProject(t.Context(), api.Project{Name: "lab"}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutProject(t.Context(), api.Project{Name: "lab", Shares: 2}, false); err != nil {
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
		"ann(user) token POST /v1/nodes/n1/drain | node n1 |  | denied: only an operator may do this",
		"ops(operator) token POST /v1/actions/hold | jobs 1 | hold; 1 QUEUED -> ONHOLD | ok",
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
		"user": {client.AuditFilter{User: "ops"}, 4}, "object": {client.AuditFilter{Object: "n1"}, 3}, "limit": {client.AuditFilter{Limit: 3}, 3},
		"job": {client.AuditFilter{Object: "1"}, 2}, "future": {client.AuditFilter{Since: s.server.now().Add(3600e9)}, 0},
	} {
		if got := s.lines(tc.f); len(got) != tc.want {
			t.Errorf("%s: %d entries, want %d: %v", name, len(got), tc.want, got)
		}
	}
}

// TestDeniedAreFew: nobody fills the log with what they may not do, and each attempt
// is counted in it.
func TestDeniedAreFew(t *testing.T) {
	s := newSite(t, nil)
	eve := s.user("eve")
	const attempts = 150
	for n := range attempts {
		if err := eve.Forget(t.Context(), fmt.Sprint("n", n%30), false); !client.IsCode(err, api.CodeDenied) {
			t.Fatal(err)
		}
	}
	s.stop() // writes what was only counted
	s.start()
	l, err := s.Audit(t.Context(), client.AuditFilter{User: "eve", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range l.Entries {
		count += e.Count
	}
	if len(l.Entries) > 30 || count != attempts {
		t.Errorf("%d entries tell of %d refusals, want %d", len(l.Entries), count, attempts)
	}
}

// TestRefusedAreAudited: whoever is refused for who they are, by a route or by what
// it was asked of, is in the audit log with what they wanted.
func TestRefusedAreAudited(t *testing.T) {
	s := closedSite(t)
	eve, gone := s.user("eve"), s.token(api.TokenRequest{Use: api.TokenUser, User: "eve"})
	n1, other := s.joined("n1"), s.machine("n1")
	if err := s.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	old := &client.Client{Address: s.remote(), Token: gone.Secret}
	t.Cleanup(old.Close)
	garbage := &client.Client{Address: s.remote(), Token: "x" + gone.Secret}
	t.Cleanup(garbage.Close)
	used := s.token(api.TokenRequest{Use: api.TokenJoin})
	named := s.token(api.TokenRequest{Use: api.TokenJoin, Node: "n7"})
	if err := s.machine("n3").join(t, used.Secret); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"log":     func() error { _, err := eve.Log(t.Context(), "1", client.LogOptions{}); return err },
		"explain": func() error { _, err := eve.Explain(t.Context(), "1"); return err },
		"drain":   func() error { _, err := eve.Drain(t.Context(), "n1", api.DrainRequest{Reason: "mine"}); return err },
		"token": func() error {
			_, err := eve.CreateToken(t.Context(), api.TokenRequest{Use: api.TokenUser, User: "root"})
			return err
		},
		"audit":         func() error { _, err := eve.Audit(t.Context(), client.AuditFilter{}); return err },
		"revoked token": func() error { _, err := old.Status(t.Context()); return err },
		"no token":      func() error { _, err := garbage.Status(t.Context()); return err },
		"another key":   func() error { return other.join(t, named.Secret) },
		"a used token":  func() error { return s.machine("n4").join(t, used.Secret) },
		"another name":  func() error { return s.machine("n8").join(t, named.Secret) },
		"a taken name":  func() error { return other.join(t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret) },
		"another node":  func() error { _, err := n1.NodeSync(t.Context(), "n3", n1.hello()); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s was let in", what)
		}
	}
	if r, err := eve.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{"1"}}); err != nil || r.Results[0].Error == nil {
		t.Errorf("a cancel was answered %+v, %v", r, err)
	}
	if _, err := eve.Submit(t.Context(), &api.SubmitRequest{Project: "lab", Job: []byte(hushJob)}, ""); err == nil {
		t.Error("a job was taken")
	}
	s.stop()
	s.start()
	var got []string
	for _, line := range s.lines(client.AuditFilter{Limit: 1000}) {
		if strings.Contains(line, "| denied: ") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	want := []string{
		"() token GET /v1/status |  |  | denied: the token is not one of this controller's",
		"(join) token POST /v1/nodes/n1/join | node n1 |  | denied: there is a node n1 already, with another key",
		"(join) token POST /v1/nodes/n1/join | node n1 |  | denied: this token is for node n7, not for n1",
		"(join) token POST /v1/nodes/n4/join | node n4 |  | denied: the token " + used.ID + " has been used up",
		"(join) token POST /v1/nodes/n8/join | node n8 |  | denied: this token is for node n7, not for n8",
		"eve() token GET /v1/status |  |  | denied: the token " + gone.ID + " was revoked",
		"eve(user) token GET /v1/audit |  |  | denied: only an operator may do this",
		"eve(user) token GET /v1/jobs/1/explain | job 1 |  | denied: job 1 belongs to project lab",
		"eve(user) token GET /v1/jobs/1/log | job 1 |  | denied: job 1 belongs to project lab",
		"eve(user) token POST /v1/actions/cancel | jobs 1 | cancel | denied: they belong to others",
		`eve(user) token POST /v1/jobs |  |  | denied: there is no project "lab" for eve to submit to`,
		"eve(user) token POST /v1/nodes/n1/drain | node n1 |  | denied: only an operator may do this",
		"eve(user) token POST /v1/tokens |  |  | denied: only an admin makes tokens for others and for nodes",
		"node n1(node) certificate POST /v1/nodes/n3/sync | node n3 |  | denied: node n1 speaks for itself, not for node n3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
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
		"ann(user) token POST /v1/actions/cancel | job 1 tasks 3-5 | cancel | ok",
		"ann(user) token POST /v1/actions/cancel | job 1 tasks 30-31 | cancel | refused: job 1 has no task 30-31",
		"ann(user) token POST /v1/actions/pause | job 1 tasks 7 | pause | refused: job 9 is QUEUED: only a job that runs can be paused",
	}
	if diff := cmp.Diff(want, s.lines(client.AuditFilter{User: "ann", Object: "tasks"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
