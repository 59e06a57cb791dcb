package adm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// admin is an App against a controller that has two projects, tokens and
// entries. It tells what was asked.
func admin(t *testing.T, asks *[]string, out, errs io.Writer) *cli.App {
	t.Helper()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	give := func(w http.ResponseWriter, r *http.Request) any {
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/tokens":
			return api.Token{ID: "T1", Use: "user", User: "ann", Expires: at, Secret: "s3cret"}
		case "GET /v1/tokens":
			return api.TokenList{Tokens: []api.Token{
				{ID: "T1", Use: "user", User: "ann", Created: at, Expires: at.Add(time.Hour), By: "root", Note: "laptop\x1b[31m"},
				{ID: "T2", Use: "join", Left: 3, Created: at, Expires: at.Add(time.Hour), By: "root"},
				{ID: "T3", Use: "join", Node: "gpu1", Created: at, Expires: at.Add(time.Hour), By: "root"},
				{ID: "T4", Use: "user", User: "bob", Created: at, Expires: at.Add(-time.Hour), By: "bob"},
				{ID: "T5", Use: "user", User: "bob", Created: at, Expires: at.Add(time.Hour), By: "bob", Revoked: at},
			}}
		case "GET /v1/jobs":
			return api.JobList{NoUser: true}
		case "GET /v1/site":
			return api.Site{Pin: "sha256=x", Address: "https://head:7077#sha256=x"}
		case "GET /v1/projects":
			return api.ProjectList{Projects: []api.Project{
				{Name: "default", File: true},
				{Name: "lab", GID: 7, Members: []string{"ann", "bob"}, Groups: []string{"lab"}, Shares: 2, Clusters: []int{1, 2}, Limits: api.ProjectLimits{GPUs: 1.5}},
			}}
		case "PUT /v1/projects/strange":
			return api.Project{Name: "strange", Warnings: []string{"project strange.members: nobody is in x"}}
		case "GET /v1/shares":
			return api.ShareList{Shares: []api.Share{
				{Project: "default"}, {Project: "default", User: "ann"},
				{Project: "lab", Budget: &api.Budget{Hours: 10, Used: 8.5, Monthly: true}},
			}}
		case "POST /v1/policy/check":
			return api.Policy{Changes: []string{"- a", "+ b"}, Warnings: []string{"admins: nobody is in lab"}}
		case "GET /v1/policy":
			return api.Policy{Text: "operators: []\n"}
		case "GET /v1/audit":
			return api.AuditList{Entries: []api.AuditEntry{
				{Seq: 2, Time: at, User: "ops", From: "192.0.2.1", Via: "munge", Action: "POST /v1/nodes/n1/drain", Object: "node n1", Change: "drained", Result: "ok"},
				{Seq: 1, Time: at, User: "ann", From: "socket", Via: "socket", Action: "POST /v1/jobs", Object: "job 1", Change: "submitted", Result: "ok"},
			}}
		}
		return struct{}{}
	}
	return &cli.App{Out: out, Err: errs, Now: func() time.Time { return at }, Client: &client.Client{Address: "/none",
		Transport: clitest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			*asks = append(*asks, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
			w := httptest.NewRecorder()
			err := json.NewEncoder(w).Encode(give(w, r))
			return w.Result(), err
		})}}
}

func TestAccess(t *testing.T) {
	n := func(i int) *int { return &i }
	tests := map[string]struct {
		run  func(context.Context, *cli.App) error
		asks []string
		out  string
		err  string // part of it
		code int
	}{
		"token": {
			run:  (&CreateToken{For: time.Hour}).Run,
			asks: []string{`POST /v1/tokens {"use":"user","lifeS":3600}`},
			out:  "s3cret\n", err: "it is shown only now",
		},
		"token-of-a-stranger": {run: (&CreateToken{User: "alcie", For: time.Hour}).Run, out: "s3cret\n", err: "this site knows no user alcie: it has no account, token or job here", asks: []string{"GET /v1/jobs?all=true&limit=1&user=alcie", `POST /v1/tokens {"use":"user","user":"alcie","lifeS":3600}`}},
		"audit-none":          {run: (&Audit{}).Run, code: exit.Usage, err: "-n is 0: want 1 to 10000"},
		"tokens": {
			run:  (&Tokens{All: true}).Run,
			asks: []string{"GET /v1/tokens?all=true"},
			out: "ID FOR STATE CREATED EXPIRES BY NOTE\n" +
				"T1 ann in force 2026-03-01T09:00:00Z 2026-03-01T10:00:00Z root laptop\\x1b[31m\n" +
				"T2 join any node 3 left 2026-03-01T09:00:00Z 2026-03-01T10:00:00Z root\n" +
				"T3 join gpu1 used up 2026-03-01T09:00:00Z 2026-03-01T10:00:00Z root\n" +
				"T4 bob expired 2026-03-01T09:00:00Z 2026-03-01T08:00:00Z bob\n" +
				"T5 bob revoked 2026-03-01T09:00:00Z 2026-03-01T10:00:00Z bob\n",
		},
		"revoke": {
			run:  (&RevokeTokens{IDs: []string{"T1", "T2"}}).Run,
			asks: []string{"DELETE /v1/tokens/T1", "DELETE /v1/tokens/T2"},
			out:  "token T1 revoked\ntoken T2 revoked\n",
		},
		"revoke-nodes": {
			run:  (&RevokeNodes{Nodes: []string{"gpu[1-2]"}}).Run,
			asks: []string{"DELETE /v1/nodes/gpu1/key", "DELETE /v1/nodes/gpu2/key"},
			out:  "gpu1 revoked\ngpu2 revoked\n",
		},
		"join-string": {
			run:  JoinString{}.Run,
			asks: []string{"GET /v1/site"}, out: "https://head:7077#sha256=x\n",
		},
		"projects": {
			run:  Projects{}.Run,
			asks: []string{"GET /v1/projects", "GET /v1/shares"},
			out: "NAME GID SHARES CLUSTERS LIMITS BUDGET FROM MAY MEMBERS\ndefault 0 1 all file everyone\n" +
				"lab 7 2 1,2 gpus=1.5 8.5 of 10.0 h (85%) this month gadm ann, bob, group lab\n",
		},
		"add": {
			run:  (&AddProject{projectFlags{Name: "new", GID: n(9), Members: []string{"ann"}, Clusters: []int{1}, UserShares: map[string]int64{"ann": 2}}}).Run,
			asks: []string{`PUT /v1/projects/new?create=true {"name":"new","gid":9,"members":["ann"],"clusters":[1],"userShares":{"ann":2}}`},
			out:  "project new made\n",
		},
		"set": {
			run:  (&SetProject{projectFlags{Name: "lab", Members: []string{"+eve", "-bob"}, Groups: []string{"other"}, AnyCluster: true, Running: n(4)}}).Run,
			asks: []string{"GET /v1/projects", `PUT /v1/projects/lab?create=false {"name":"lab","gid":7,"members":["ann","eve"],"groups":["other"],"shares":2,"limits":{"running":4,"gpus":1.5}}`},
			out:  "project lab changed\n",
		},
		"allow": {
			run: (&SetProject{projectFlags{Name: "lab", Privileged: yes(true), HostNetwork: yes(false), Capabilities: []string{"+NET_RAW", "+MKNOD"}}}).Run,
			asks: []string{"GET /v1/projects",
				`PUT /v1/projects/lab?create=false {"name":"lab","gid":7,"members":["ann","bob"],"groups":["lab"],"shares":2,"clusters":[1,2],"limits":{"gpus":1.5},"privileged":true,"capabilities":["NET_RAW","MKNOD"]}`},
			out: "project lab changed\n",
		},
		"allow-nothing": {
			run:  (&SetProject{projectFlags{Name: "lab", Capabilities: []string{"-NET_RAW"}}}).Run,
			asks: []string{"GET /v1/projects"}, code: exit.Usage,
		},
		"nobody-left": { // which would be everybody
			run:  (&SetProject{projectFlags{Name: "lab", Members: []string{"-ann", "-bob"}, Groups: []string{"-lab"}}}).Run,
			asks: []string{"GET /v1/projects"}, code: exit.Usage,
		},
		"set-mixed": {
			run:  (&SetProject{projectFlags{Name: "lab", Members: []string{"+eve", "bob"}}}).Run,
			asks: []string{"GET /v1/projects"}, code: exit.Usage,
		},
		"set-unknown": {
			run:  (&SetProject{projectFlags{Name: "none"}}).Run,
			asks: []string{"GET /v1/projects"}, code: exit.NotFound,
		},
		"remove": {
			run:  (&RemoveProjects{Names: []string{"lab"}}).Run,
			asks: []string{"DELETE /v1/projects/lab"}, out: "project lab removed\n",
		},
		"policy": {
			run:  ShowPolicy{}.Run,
			asks: []string{"GET /v1/policy"}, out: "operators: []\n",
		},
		"policy-check": {
			run:  CheckPolicy{}.Run,
			asks: []string{"POST /v1/policy/check"}, out: "- a\n+ b\n", err: "note: admins: nobody is in lab\nthe file is fine",
		},
		"policy-reload": {
			run:  ReloadPolicy{}.Run,
			asks: []string{"POST /v1/policy/reload"}, err: "in force; nothing changes",
		},
		"audit": {
			run:  (&Audit{User: "ops", Object: "n1", Limit: 5, Since: "1h"}).Run,
			asks: []string{"GET /v1/audit?limit=5&object=n1&since=2026-03-01T08%3A00%3A00Z&user=ops"},
			out: "TIME USER FROM VIA ACTION OBJECT CHANGE RESULT\n2026-03-01T09:00:00Z ann socket socket POST /v1/jobs job 1 submitted ok\n" +
				"2026-03-01T09:00:00Z ops 192.0.2.1 munge POST /v1/nodes/n1/drain node n1 drained ok\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asks []string
			var out, errs bytes.Buffer
			a := admin(t, &asks, &out, &errs)
			if code := a.Finish(cli.Program{Name: "gadm"}, tc.run(t.Context(), a)); code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, errs.String())
			}
			if diff := cmp.Diff(tc.asks, asks); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
			}
			if diff := cmp.Diff(tc.out, got.String()); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
			if !strings.Contains(errs.String(), tc.err) {
				t.Errorf("on stderr %q, want %q", errs.String(), tc.err)
			}
		})
	}
}

func yes(v bool) *bool { return &v }

// TestSaveToken: a saved token is its owner's alone, replaces the old one as a
// whole, and is not shown; what cannot be written makes no token.
func TestSaveToken(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	old := filepath.Join(dir, "join.token")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		run  func(context.Context, *cli.App) error
		path string
		asks int
		code int
	}{
		"save":        {(&CreateToken{For: time.Hour, Save: true}).Run, filepath.Join(dir, "gbatch/token"), 1, exit.OK},
		"to":          {(&CreateNodeToken{For: time.Hour, To: old}).Run, old, 1, exit.OK},
		"a-directory": {(&CreateToken{For: time.Hour, To: dir}).Run, "", 0, exit.Failure},
		"others":      {(&CreateToken{User: "ann", For: time.Hour, Save: true}).Run, "", 0, exit.Usage},
	} {
		var asks []string
		var out, errs bytes.Buffer
		a := admin(t, &asks, &out, &errs)
		if code := a.Finish(cli.Program{Name: "gadm"}, tc.run(t.Context(), a)); code != tc.code || len(asks) != tc.asks || out.Len() > 0 {
			t.Errorf("%s: code %d, asked %q, printed %q: %s", name, code, asks, out.String(), errs.String())
		}
		if tc.path == "" {
			continue
		}
		text, err := os.ReadFile(tc.path)
		info, err2 := os.Stat(tc.path)
		if err != nil || err2 != nil || string(text) != "s3cret\n" || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v, %v", name, text, info, errors.Join(err, err2))
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestNoTokens: an empty list of the own tokens says that there are others'.
func TestNoTokens(t *testing.T) {
	for _, all := range []bool{false, true} {
		var out, errs bytes.Buffer
		answer := clitest.RoundTripper(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			clitest.Answer(w, api.TokenList{Tokens: []api.Token{}})
			return w.Result(), nil
		})
		a := &cli.App{Out: &out, Err: &errs, Now: clitest.Clock, Client: &client.Client{Address: "/none", Transport: answer}}
		if err := (&Tokens{All: all}).Run(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(errs.String(), "none is yours"); said == all || !strings.HasPrefix(out.String(), "ID ") {
			t.Errorf("-a %t: %q %q", all, errs.String(), out.String())
		}
	}
}

// TestStrangersSaid adds a project with a group that the controller does not
// know: it is made, and that is said.
func TestStrangersSaid(t *testing.T) {
	var asks []string
	var out, errs bytes.Buffer
	a := admin(t, &asks, &out, &errs)
	if err := (&AddProject{projectFlags{Name: "strange", Groups: []string{"x"}}}).Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("project strange made\n", out.String()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(errs.String(), "note: project strange.members: nobody is in x") {
		t.Errorf("errors are %q", errs.String())
	}
}
