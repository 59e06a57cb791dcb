package ctld

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/sched"
)

// own is a document that eve may submit, without its last bracket.
const own = `{"name":"mine","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a","command":"true"}}`

// TestHostileUser: eve has a token and knows the numbers and UUIDs of ann's
// job. In a row of requests she tries to read, change, end or take over what is
// not hers, to become somebody else, and to break the controller. After each
// ann's job and token are as they were, and no answer had a word of her document.
func TestHostileUser(t *testing.T) {
	s := closedSite(t)
	hers := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"})
	mine := s.token(api.TokenRequest{Use: api.TokenUser, User: "eve"})
	eve := column{name: "eve", token: mine.Secret}
	before := s.job("1")
	jwt := strings.Split(mine.Secret, ".")
	id := before.UUID
	submit := func(rest string) string { return `{"job":` + own + `}` + rest + `}` }
	tests := []struct {
		name, method, path, body string
		code                     int
		as                       *column // nil: eve
	}{
		{"reads by UUID", "GET", "/v1/jobs/" + id, "", 200, nil},
		{"reads by the beginning of a UUID", "GET", "/v1/jobs/" + id[:9], "", 200, nil},
		{"reads a task", "GET", "/v1/jobs/1_0", "", 404, nil},
		{"reads by a path", "GET", "/v1/jobs/2%2F..%2F1", "", 404, nil},
		{"explains by UUID", "GET", "/v1/jobs/" + id + "/explain", "", 403, nil},
		{"reads the log by UUID", "GET", "/v1/jobs/" + id + "/log?rank=4294967295", "", 403, nil},
		{"searches by name", "GET", "/v1/jobs?all=true&name=hush-name&user=ann", "", 200, nil},
		{"searches by image", "GET", "/v1/history?name=hush-name&user=ann", "", 200, nil},
		{"asks for all there is", "GET", "/v1/jobs?limit=9223372036854775807", "", 200, nil},
		{"asks for less than nothing", "GET", "/v1/history?limit=-1&start=-9223372036854775808", "", 422, nil},
		{"cancels by UUID", "POST", "/v1/actions/cancel", `{"ids":["` + id + `"]}`, 200, nil},
		{"cancels by filter", "POST", "/v1/actions/cancel", `{"user":"ann"}`, 200, nil},
		{"cancels everything", "POST", "/v1/actions/cancel", `{}`, 400, nil},
		{"cancels with a user in the body", "POST", "/v1/actions/cancel", `{"ids":["1"],"as":"ann","operator":true}`, 200, nil},
		{"requeues, halts and signals", "POST", "/v1/actions/signal", `{"ids":["1"],"signal":"KILL"}`, 200, nil},
		{"does an action that is none", "POST", "/v1/actions/..%2Ffinish", `{"ids":["1"]}`, 422, nil},
		{"raises its priority", "POST", "/v1/actions/update", `{"ids":["1"],"change":{"priority":1000000}}`, 200, nil},
		{"gives it secrets", "PATCH", "/v1/jobs/1/secrets", `{"values":{"A":"b"}}`, 403, nil},
		{"resizes it", "PATCH", "/v1/jobs/" + id, `{"cpus":1}`, 403, nil},
		{"enters it", "GET", "/v1/jobs/" + id + "/exec", "", 403, nil},
		{"watches it", "GET", "/v1/events?job=77&user=ann", "", 404, nil},
		{"submits to her project", "POST", "/v1/jobs", submit(`,"project":"lab"`), 403, nil},
		{"submits to a project that is a path", "POST", "/v1/jobs", submit(`,"project":"../lab"`), 403, nil},
		{"submits as ann", "POST", "/v1/jobs", submit(`,"user":"ann","operator":true`), 200, nil},
		{"replaces her job of that name", "POST", "/v1/jobs", `{"job":` + strings.Replace(own, "mine", "hush-name", 1) + `,"gbatch":{"replace":true}}}`, 200, nil},
		{"waits for her job", "POST", "/v1/jobs", `{"job":` + own + `,"gbatch":{"dependencies":"aftercorr:1"}}}`, 200, nil},
		{"raises its own priority", "POST", "/v1/jobs", `{"job":` + own + `,"gbatch":{"priority":1}}}`, 403, nil},
		{"wants root of the node", "POST", "/v1/jobs", `{"job":` + own + `,"gbatch":{"privileged":true}}}`, 403, nil},
		{"takes a project twice", "POST", "/v1/jobs", `{"project":"default","project":"lab","job":` + own + `}}`, 403, nil},
		{"makes a token for ann", "POST", "/v1/tokens", `{"use":"user","user":"ann"}`, 403, nil},
		{"makes a token of a token", "POST", "/v1/tokens", `{"use":"user"}`, 403, nil},
		{"makes a token for a node", "POST", "/v1/tokens", `{"use":"join","node":"n1"}`, 403, nil},
		{"revokes ann's token", "DELETE", "/v1/tokens/" + hers.ID, "", 404, nil},
		{"lists ann's tokens", "GET", "/v1/tokens?all=true", "", 403, nil},
		{"speaks for a node", "POST", "/v1/nodes/n1/sync", `{"instance":"i","inventory":{"hostname":"n1","cpus":1}}`, 403, nil},
		{"joins as a node", "POST", "/v1/nodes/n1/join", `{}`, 403, nil},
		{"drains a node", "POST", "/v1/nodes/n1/drain", `{"reason":"x"}`, 403, nil},
		{"changes a project", "PUT", "/v1/projects/lab", `{"members":["eve"]}`, 403, nil},
		{"reads the audit log by a path", "GET", "/v1/status/../audit", "", 307, nil},
		{"reads the audit log by slashes", "GET", "//v1//audit", "", 307, nil},
		{"reads the audit log by an escape", "GET", "/v1/%61udit", "", 403, nil},
		{"takes a backup", "POST", "/v1/backup?vault=true", "", 403, nil},
		{"uses a method that is none", "TRACE", "/v1/jobs/1", "", 404, nil},
		{"nests deeply", "POST", "/v1/jobs", `{"job":` + strings.Repeat("[", 100_000), 422, nil},
		{"sends too much", "POST", "/v1/jobs", `{"job":"` + strings.Repeat("x", 3<<20) + `"}`, 413, nil},
		{"sends what is no text", "POST", "/v1/jobs", "\xff\xfe\x00", 422, nil},
		{"has ann's name and her own signature", "GET", "/v1/jobs/1/log", "", 401, &column{token: strings.Join([]string{jwt[0], strings.Split(hers.Secret, ".")[1], jwt[2]}, ".")}},
		{"has a token without a signature", "GET", "/v1/jobs/1/log", "", 401, &column{token: "eyJhbGciOiJub25lIn0." + strings.Split(hers.Secret, ".")[1] + "."}},
		{"is root by a header", "GET", "/v1/audit", "", 401, &column{header: "Basic cm9vdDo="}},
		{"is ann by munge", "GET", "/v1/audit", "", 401, &column{header: "MUNGE MUNGE:AwQDAAA=:"}},
		{"has no name", "GET", "/v1/jobs/1", "", 401, &column{}},
	}
	for _, tc := range tests {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			as := eve
			if tc.as != nil {
				as = *tc.as
			}
			code, text := as.do(t, s, tc.method, tc.path, tc.body)
			if code != tc.code {
				t.Errorf("%s %s is answered %d %.300s, want %d", tc.method, tc.path, code, text, tc.code)
			}
			if strings.Contains(text, "hush") && !strings.Contains(tc.body, "hush") {
				t.Errorf("the answer shows what is ann's: %s", text)
			}
			d := s.job("1")
			if d.Version != before.Version || d.State != before.State || d.Project != "lab" {
				t.Errorf("ann's job was %s, version %d, and is %s, version %d", before.State, before.Version, d.State, d.Version)
			}
			if code, _ := (column{token: hers.Secret}).do(t, s, http.MethodGet, "/v1/jobs/1", ""); code != 200 {
				t.Errorf("ann's token is answered %d", code)
			}
			if err := s.server.loop.Ask(t.Context(), func(c *control.Controller, _ sched.Time) {
				if err := c.Check(); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, j := range []int{2, 3, 4} { // whatever eve submitted is eve's
		if d := s.job(fmt.Sprint(j)); d.User != "eve" || d.Project != "default" {
			t.Errorf("job %d belongs to %s in %s", j, d.User, d.Project)
		}
	}
}
