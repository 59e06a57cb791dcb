package ctld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/api"
)

// probe asks one route for one object. Who is in may is let in and finds it; for all
// others it is refused, or as if it were not there.
type probe struct {
	object string
	path   string
	body   string
	may    string // callers
	shows  string // text that the answer has for them alone; empty: its status tells
	only   bool   // just the others are tried, as it would do harm, or wait for a node
}

// withoutObjects are routes that are of the site as a whole: TestEveryRoute has who may
// use them. Those with a name are tested there with each object.
var withoutObjects = map[string]string{
	"POST /v1/convert": "", "GET /v1/controllers": "", "POST /v1/controllers": "", "DELETE /v1/controllers/{name}": "", "POST /v1/controllers/{name}/lead": "",
	"GET /v1/diag": "", "GET /v1/site": "", "GET /v1/policy": "", "POST /v1/policy/check": "", "POST /v1/policy/reload": "", "POST /v1/what-if": "", "GET /v1/audit": "",
	"POST /v1/backup": "", "GET /metrics": "", "GET /healthz": "", "GET /v1/leader": "", "GET /web/": "", "GET /{$}": "", "/": "",
	"GET /openapi.json": "", "GET /openapi.yaml": "", "GET /openapi-3.0.json": "", "GET /openapi-3.0.yaml": "",
	"POST /v1/streams/{id}": "TestStreamOfAnotherNode", "GET /v1/streams/{id}": "TestStreamOfAnotherNode",
	"GET /v1/login": "", "POST /v1/login": "", "GET /v1/login/page": "", "POST /v1/login/page": "", "POST /v1/login/page/return": "",
	"POST /v1/tokens": "TestHostileUser", "POST /v1/session": "TestSessionCookie", "DELETE /v1/session": "TestSessionCookie", "GET /v1/events": "TestNoEventsOfOthers",
	"GET /v1/cluster": "TestNothingOfOthers", "GET /v1/plan": "TestNothingOfOthers", "GET /v1/usage": "TestUsage", "GET /v1/shares": "TestShares",
	"POST /v1/jobs/{id}/ports/{port}": "TestJobPortHostile",
	"POST /v1/nodes/{name}/join":      "TestJoinTokens", "POST /v1/trees": "TestOfOneUser", "PUT /v1/trees/chunks/{sum}": "TestOfOneUser",
}

// TestEveryObject asks each route that the API has for each kind of object
// that it can name, as every kind of caller: of oneself, of one's project, of others', of
// a hidden one, in every state. A new route needs its objects.
func TestEveryObject(t *testing.T) {
	s, ids := markedSite(t)
	secret := func(user string) string { return s.token(api.TokenRequest{Use: api.TokenUser, User: user}).Secret }
	callers := []column{{name: "nobody"}}
	for _, user := range []string{"ann", "mia", "eve", "zoe", "ops", "boss"} {
		callers = append(callers, column{name: user, token: secret(user)})
	}
	callers = append(callers, column{name: "n2", cert: s.joined("n2").cert}, column{name: "n3", cert: s.joined("n3").cert},
		column{name: "join", token: s.token(api.TokenRequest{Use: api.TokenJoin}).Secret})
	probes := s.objects(ids)
	for _, pattern := range s.patterns() {
		tested, without := withoutObjects[pattern]
		list := probes[pattern]
		delete(probes, pattern)
		if (len(list) > 0) == without {
			t.Errorf("%s: say for which objects it can be asked, or that there are none (it has %d, and is tested by %q)", pattern, len(list), tested)
		}
		method, _, _ := strings.Cut(pattern, " ")
		for _, p := range list {
			may := strings.Fields(p.may)
			for _, inside := range []bool{false, true} { // who is let in may change it
				for _, c := range callers {
					if slices.Contains(may, c.name) != inside || inside && p.only {
						continue
					}
					if status, text := c.do(t, s, method, p.path, p.body); p.found(status, text) != inside {
						t.Errorf("%s: %s of %s is answered %d %.300s", pattern, p.object, c.name, status, text)
					}
				}
			}
		}
	}
	for pattern := range probes {
		t.Errorf("%s has objects, and is no route", pattern)
	}
}

// found says whether an answer is that of somebody who may.
func (p probe) found(status int, text string) bool {
	if p.shows != "" {
		return status < 300 && strings.Contains(text, p.shows)
	}
	return status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusNotFound && !strings.Contains(text, `"code":"denied"`)
}

// patterns are the routes of the API's description, and those that it does not have.
func (s *testSite) patterns() (list []string) {
	s.t.Helper()
	var doc struct{ Paths map[string]map[string]any }
	rec := httptest.NewRecorder()
	s.server.api.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || len(doc.Paths) < 30 {
		s.t.Fatalf("%d paths are described: %v", len(doc.Paths), err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			list = append(list, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range s.server.api.Table {
		list = append(list, r.Pattern)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

const (
	users = "ann mia eve zoe ops boss"
	lab   = "ann mia ops boss" // who may see jobs of the project lab
	quiet = "zoe ops boss"
	alone = "ann ops boss" // those of ann, in a project that everybody may use
)

// objects are all that can be named of a marked site, by route.
func (s *testSite) objects(ids []string) map[string][]probe {
	s.t.Helper()
	submit := func(user, project string) string {
		r, err := s.user(user).Submit(s.t.Context(), &api.SubmitRequest{Project: project, Job: markedJob(""), Hold: true}, "")
		if err != nil {
			s.t.Fatal(err)
		}
		return fmt.Sprint(r.Number)
	}
	jobs := []probe{{object: "a job of ann's in a project of all", path: submit("ann", "default"), may: alone}, {object: "a job of a hidden project", path: submit("zoe", "quiet"), may: quiet}}
	for i, kind := range []string{"an ended job", "a running job", "a job that waits for another", "a job on hold", "an array", "a task", "a template", "a job that cannot start"} {
		jobs = append(jobs, probe{object: kind, path: ids[i], may: lab, only: kind == "a running job"})
	}
	out := map[string][]probe{}
	add := func(pattern string, p probe) { out[pattern] = append(out[pattern], p) }
	for _, j := range jobs {
		at := "/v1/jobs/" + j.path
		owner := strings.Fields(j.may)[0]
		for _, what := range []string{"explain", "curves", "log", "exec", "attach", "save", "forward"} {
			add("GET /v1/jobs/{id}/"+what, probe{object: j.object, path: at + "/" + what, may: j.may, only: j.only && what != "explain" || what == "log"})
		}
		add("GET /v1/jobs/{id}", probe{object: j.object, path: at, may: j.may, shows: "hush"})
		add("PATCH /v1/jobs/{id}", probe{object: j.object, path: at, body: `{"cpus":1}`, may: j.may, only: j.only})
		add("PATCH /v1/jobs/{id}/secrets", probe{object: j.object, path: at + "/secrets", body: `{"values":{"hush-secret":"x"}}`, may: owner, only: j.only})
		for _, action := range []string{"hold", "release", "pause", "resume", "requeue", "halt", "signal", "update", "cancel"} {
			body := fmt.Sprintf(`{"ids":[%q],"signal":"USR1","change":{"name":"x"}}`, j.path)
			for _, at := range []string{"/v1/jobs/actions/", "/v1/actions/"} {
				add("POST "+at+"{action}", probe{object: action + " of " + j.object, path: at + action, body: body, may: j.may, only: j.only || action == "cancel" || action == "release" || action == "requeue"})
			}
		}
	}
	for project, may := range map[string]string{"lab": lab, "quiet": quiet, "default": users} {
		body := fmt.Sprintf(`{"dryRun":true,"project":%q,"job":%s}`, project, own+"}")
		add("POST /v1/jobs", probe{object: "project " + project, path: "/v1/jobs", body: body, may: may})
		add("POST /v1/submissions", probe{object: "project " + project, path: "/v1/submissions", body: `{"jobs":[` + strings.Replace(body, `"dryRun"`, `"hold"`, 1) + `]}`, may: may})
		add("GET /v1/projects", probe{object: "project " + project, path: "/v1/projects", may: may, shows: fmt.Sprintf(`%q`, project)})
		add("GET /v1/status", probe{object: "project " + project, path: "/v1/status", may: may + map[string]string{"default": " n2 n3"}[project], shows: fmt.Sprintf(`%q`, project)})
		for _, method := range []string{"PUT", "DELETE"} {
			add(method+" /v1/projects/{name}", probe{object: "project " + project, path: "/v1/projects/" + project, body: map[string]string{"PUT": "{}"}[method], may: "boss", only: true})
		}
	}
	s.others(add)
	return out
}

// others are what is no job and no project.
func (s *testSite) others(add func(string, probe)) {
	kept, err := s.Reservations(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	reserved := `{"dryRun":true,"project":"%s","job":` + strings.Replace(own, `"request":{`, `"request":{"scheduling":{"reservationIds":["`+kept.Reservations[0].UUID+`"]},`, 1) + `}}`
	add("POST /v1/jobs", probe{object: "a reservation, in a project of all", path: "/v1/jobs", body: fmt.Sprintf(reserved, "default"), may: "zoe"})
	add("POST /v1/jobs", probe{object: "a reservation, in its project", path: "/v1/jobs", body: fmt.Sprintf(reserved, "lab"), may: lab})
	add("GET /v1/reservations", probe{object: "a reservation", path: "/v1/reservations", may: "ann mia zoe ops boss", shows: "hush-reason"})
	add("POST /v1/reservations", probe{object: "a reservation", path: "/v1/reservations", body: `{"name":"night"}`, may: "ops boss"})
	add("DELETE /v1/reservations/{name}", probe{object: "a reservation", path: "/v1/reservations/night", may: "ops boss", only: true})
	add("GET /v1/jobs", probe{object: "jobs of a project", path: "/v1/jobs?all=true&project=lab", may: lab, shows: "hush"})
	add("GET /v1/jobs", probe{object: "jobs of a hidden project", path: "/v1/jobs?all=true&project=quiet", may: quiet, shows: "hush"})
	add("GET /v1/history", probe{object: "an ended job", path: "/v1/history?project=lab", may: lab, shows: "hush"})

	for kind, r := range map[string]api.TokenRequest{"ann's token": {Use: api.TokenUser, User: "ann"}, "a token to join": {Use: api.TokenJoin}} {
		may := map[string]string{"ann's token": "ann boss", "a token to join": "boss"}[kind]
		id := s.token(r).ID
		add("DELETE /v1/tokens/{id}", probe{object: kind, path: "/v1/tokens/" + id, may: may, only: true})
		add("GET /v1/tokens", probe{object: kind, path: "/v1/tokens?all=true", may: "boss", shows: id})
		add("GET /v1/tokens", probe{object: kind, path: "/v1/tokens", may: map[bool]string{true: "ann"}[r.User != ""], shows: id})
	}

	add("GET /v1/nodes/{name}", probe{object: "a node", path: "/v1/nodes/n1", may: users})
	for method, what := range map[string]string{"POST": "/drain", "DELETE": "", "POST ": "/resume"} {
		add(strings.TrimSpace(method)+" /v1/nodes/{name}"+what, probe{object: "a node", path: "/v1/nodes/n1" + what, body: map[bool]string{true: `{"reason":"r"}`}[what != ""], may: "ops boss", only: true})
	}
	add("DELETE /v1/nodes/{name}/key", probe{object: "a node", path: "/v1/nodes/n1/key", may: "boss", only: true})
	for _, what := range []string{"sync", "logs", "certificate", "steps"} {
		add("POST /v1/nodes/{name}/"+what, probe{object: "a node", path: "/v1/nodes/n2/" + what, body: `{"instance":"i-n2","inventoryHash":"h"}`, may: "n2", only: what == "sync"})
	}
	step := `{"rank":{"job":2,"attempt":1},"uuid":"x","begin":{"key":"k","name":"s","tasks":1,"cpus":1,"ranks":[0]}}`
	add("POST /v1/nodes/{name}/steps", probe{object: "a step of a job elsewhere", path: "/v1/nodes/n2/steps", body: step, may: "", shows: "number"})
	add("POST /v1/nodes/{name}/logs", probe{object: "the log of a job elsewhere", path: "/v1/nodes/n2/logs", body: `{"pieces":[{"rank":{"job":2,"attempt":1},"uuid":"x","data":"eA=="}]}`, may: "n2", shows: `"refused"`})
	add("GET /v1/nodes/{name}/jobs/{id}/trees/{tree}", probe{object: "a directory of a job elsewhere", path: "/v1/nodes/n2/jobs/2/trees/none", may: ""})
}
