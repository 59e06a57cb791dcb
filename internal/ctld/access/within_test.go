package access

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestWithin: only the node on which a job's rank runs speaks for its programs, and
// they are a user, also where the job is an admin's.
func TestWithin(t *testing.T) {
	j := &state.Job{Number: 7, State: job.Running, UUID: [16]byte{1}, Owner: &state.Owner{User: "root", Project: "p"},
		Attempt: &state.Attempt{Attempt: 1, Ranks: []state.Rank{{Alloc: sched.Allocation{Node: "n1"}, Phase: node.PhaseRunning}}}}
	conf := site.Config{Batch: site.Batch{Commands: true}}
	a := &Authenticator{rights: &Rights{Conf: func() *site.Config { return &conf }}, job: func(n job.Number) *state.Job {
		if n == 7 {
			return j
		}
		return nil
	}}
	n1, root := Identity{User: "node n1", Role: RoleNode, Node: "n1", From: "10.0.0.1"}, Identity{User: "root", Root: true}
	good := "n1 7_0.1.0 " + j.Identity()
	for name, tc := range map[string]struct {
		by   Identity
		text string
		code string
	}{
		"the node":         {n1, good, ""},
		"local root":       {root, good, ""},
		"a user":           {Identity{User: "ann", Role: RoleUser}, good, api.CodeDenied},
		"an admin":         {Identity{User: "adm", Role: RoleAdmin}, good, api.CodeDenied},
		"another node":     {Identity{User: "node n2", Role: RoleNode, Node: "n2"}, good, api.CodeDenied},
		"of another node":  {Identity{User: "node n2", Role: RoleNode, Node: "n2"}, "n2 7_0.1.0 " + j.Identity(), api.CodeDenied},
		"another job":      {n1, "n1 8_0.1.0 " + j.Identity(), api.CodeDenied},
		"later attempt":    {n1, "n1 7_0.2.0 " + j.Identity(), api.CodeDenied},
		"another identity": {n1, "n1 7_0.1.0 00000000-0000-0000-0000-000000000002", api.CodeDenied},
		"no identity":      {n1, "n1 7_0.1.0", api.CodeBadRequest},
		"no rank":          {n1, "n1 7 x", api.CodeBadRequest},
	} {
		id, e := a.within(tc.by, tc.text)
		if code := codeOf(e); code != tc.code {
			t.Errorf("%s: %q, want %q: %v", name, code, tc.code, e)
		}
		if tc.code == "" && (id.User != "root" || id.Role != RoleUser || id.Root || id.Machine || id.Operator() || id.MayNode("n1") || id.Project != "p" || id.Via != "job 7 on node n1") {
			t.Errorf("%s: %+v", name, id)
		}
	}
	conf.Batch.Commands = false
	if _, e := a.within(n1, good); codeOf(e) != api.CodeDenied {
		t.Errorf("where the site does not let jobs: %v", e)
	}
}

func codeOf(e *api.Error) string {
	if e == nil {
		return ""
	}
	return string(e.Code)
}
