package ctld

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/api/apitest"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/pki"
)

// remote is the address over TLS.
func (s *testSite) remote() string { return s.server.Addresses()[1] }

func (s *testSite) pin() string { return s.server.pki.Pin() }

// token makes a token, as root on the controller's machine.
func (s *testSite) token(r api.TokenRequest) *api.Token {
	s.t.Helper()
	t, err := s.CreateToken(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// user is a client of a user, over TLS.
func (s *testSite) user(name string) *client.Client {
	s.t.Helper()
	c := &client.Client{Address: s.remote(), Token: s.token(api.TokenRequest{Use: api.TokenUser, User: name}).Secret}
	s.t.Cleanup(c.Close)
	return c
}

// machine is a node's client, with a key of its own.
type machine struct {
	*client.Client
	name    string
	request []byte
	pair    func([]byte) (*tls.Certificate, error)
	cert    *tls.Certificate
}

func (s *testSite) machine(name string) *machine {
	s.t.Helper()
	key, err := pki.OpenKey(filepath.Join(s.t.TempDir(), "key"))
	if err != nil {
		s.t.Fatal(err)
	}
	m := &machine{name: name, pair: func(text []byte) (*tls.Certificate, error) { return pki.Pair(text, key) }}
	if m.request, err = pki.Request(key); err != nil {
		s.t.Fatal(err)
	}
	m.Client = &client.Client{Address: s.remote(), Certificate: func() *tls.Certificate { return m.cert }}
	s.t.Cleanup(m.Close)
	return m
}

// join gets the certificate.
func (m *machine) join(t *testing.T, token string) error {
	t.Helper()
	text, err := m.JoinNode(t.Context(), m.name, token, m.request)
	if err != nil {
		return err
	}
	m.Close() // connections that show no certificate
	m.cert, err = m.pair(text)
	return err
}

// joined is a machine that has joined.
func (s *testSite) joined(name string) *machine {
	s.t.Helper()
	m := s.machine(name)
	if err := m.join(s.t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret); err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (m *machine) hello() *api.SyncRequest {
	return &api.SyncRequest{Instance: "i-" + m.name, Boot: "b", InventoryHash: "h",
		Inventory: &node.Inventory{Hostname: m.name, Cluster: 1, Bridge: true, Gang: true, CPUs: 8, MemBytes: 32 << 30}}
}

// column is one kind of caller of TestEveryRoute.
type column struct {
	name  string
	token string
	cert  *tls.Certificate

	header string // instead of a token
}

func (c column) do(t *testing.T, s *testSite, method, path, body string) (int, string) {
	t.Helper()
	base, _, _ := strings.Cut(s.remote(), "#")
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.header != "" {
		req.Header.Set("Authorization", c.header)
	}
	resp, err := s.wire(c.cert).RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", c.name, method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// wire is the connections of whoever has the certificate, or of those who have none.
func (s *testSite) wire(cert *tls.Certificate) *apitest.Transport {
	made, _ := s.wires.LoadOrStore(cert, &apitest.Transport{Of: &description, Bad: func(err error) { s.t.Error(err) },
		Base: &http.Transport{TLSClientConfig: pki.ClientTLS(s.pin(), time.Now, func() *tls.Certificate { return cert })}})
	return made.(*apitest.Transport)
}

// matrix says for each route what each caller is answered. Job 1 is ann's, in a
// project of ann and mia, and waits. 401: who are you; 403: not for you. What is
// let in finds what is named here (2xx), or that there is no such thing (404),
// or that it makes no sense (400, 409). A new route needs a line.
var matrix = map[string]struct {
	path, body string
	//    nobody ann mia eve ops boss n1 n2 join
	want string
}{
	"POST /v1/jobs":                    {"/v1/jobs", `{"dryRun":true,"project":"lab","job":` + hushJob + `}`, "401 200 200 403 200 200 403 403 403"},
	"POST /v1/submissions":             {"/v1/submissions", `{"jobs":[]}`, "401 400 400 400 400 400 403 403 403"},
	"GET /v1/jobs":                     {"/v1/jobs?all=true", "", "401 200 200 200 200 200 403 403 403"},
	"GET /v1/jobs/{id}":                {"/v1/jobs/1", "", "401 200 200 200 200 200 403 403 403"},
	"PATCH /v1/jobs/{id}":              {"/v1/jobs/1", `{"cpus":1}`, "401 409 409 403 409 409 403 403 403"},
	"GET /v1/jobs/{id}/explain":        {"/v1/jobs/1/explain", "", "401 200 200 403 200 200 403 403 403"},
	"GET /v1/jobs/{id}/curves":         {"/v1/jobs/1/curves", "", "401 409 409 403 409 409 403 403 403"},
	"POST /v1/convert":                 {"/v1/convert", `{"text":` + strconv.Quote(hushJob) + `}`, "401 200 200 200 200 200 403 403 403"},
	"PATCH /v1/jobs/{id}/secrets":      {"/v1/jobs/1/secrets", `{"values":{}}`, "401 400 403 403 403 403 403 403 403"},
	"GET /v1/jobs/{id}/log":            {"/v1/jobs/1/log", "", "401 409 409 403 409 409 403 403 403"},
	"GET /v1/jobs/{id}/exec":           {"/v1/jobs/1/exec", "", "401 409 409 403 409 409 403 403 403"},
	"GET /v1/jobs/{id}/attach":         {"/v1/jobs/1/attach", "", "401 409 409 403 409 409 403 403 403"},
	"GET /v1/jobs/{id}/save":           {"/v1/jobs/1/save", "", "401 409 409 403 409 409 403 403 403"},
	"GET /v1/jobs/{id}/forward":        {"/v1/jobs/1/forward", "", "401 409 409 403 409 409 403 403 403"},
	"POST /v1/jobs/actions/{action}":   {"/v1/jobs/actions/hold", `{"ids":["1"]}`, "401 200 200 200 200 200 403 403 403"}, // and see TestOthersJobs
	"POST /v1/actions/{action}":        {"/v1/actions/hold", `{"ids":["1"]}`, "401 200 200 200 200 200 403 403 403"},
	"GET /v1/events":                   {"/v1/events?job=77", "", "401 404 404 404 404 404 403 403 403"}, // without a job it would not end
	"POST /v1/backup":                  {"/v1/backup", "", "401 403 403 403 403 403 403 403 403"},        // see TestBackup
	"GET /v1/controllers":              {"/v1/controllers", "", "401 403 403 403 200 200 403 403 403"},
	"POST /v1/controllers":             {"/v1/controllers", `{"name":"c2","address":"192.0.2.2:7078"}`, "401 403 403 403 403 403 403 403 403"}, // root alone
	"DELETE /v1/controllers/{name}":    {"/v1/controllers/c2", "", "401 403 403 403 403 409 403 403 403"},
	"POST /v1/controllers/{name}/lead": {"/v1/controllers/c2/lead", "", "401 403 403 403 403 409 403 403 403"},
	"GET /v1/cluster":                  {"/v1/cluster", "", "401 200 200 200 200 200 403 403 403"},
	"GET /v1/plan":                     {"/v1/plan", "", "401 200 200 200 200 200 403 403 403"},
	"GET /v1/nodes/{name}":             {"/v1/nodes/none", "", "401 404 404 404 404 404 403 403 403"},
	"GET /v1/history":                  {"/v1/history?attempts=true", "", "401 403 403 403 200 200 403 403 403"}, // and see TestHistory
	"GET /v1/usage":                    {"/v1/usage?by=project,user", "", "401 200 200 200 200 200 403 403 403"}, // and see TestUsage
	"GET /v1/shares":                   {"/v1/shares", "", "401 200 200 200 200 200 403 403 403"},                // and see TestShares
	"GET /v1/status":                   {"/v1/status", "", "401 200 200 200 200 200 200 200 403"},
	"GET /v1/diag":                     {"/v1/diag", "", "401 403 403 403 200 200 403 403 403"},
	"GET /v1/site":                     {"/v1/site", "", "401 200 200 200 200 200 403 403 403"},
	"GET /metrics":                     {"/metrics", "", "401 403 403 403 200 200 403 403 403"},
	"GET /v1/reservations":             {"/v1/reservations", "", "401 200 200 200 200 200 403 403 403"},
	"GET /v1/projects":                 {"/v1/projects", "", "401 200 200 200 200 200 403 403 403"},

	"POST /v1/nodes/{name}/drain":    {"/v1/nodes/none/drain", `{"reason":"r"}`, "401 403 403 403 404 404 403 403 403"},
	"POST /v1/nodes/{name}/resume":   {"/v1/nodes/none/resume", `{}`, "401 403 403 403 404 404 403 403 403"},
	"DELETE /v1/nodes/{name}":        {"/v1/nodes/none", "", "401 403 403 403 404 404 403 403 403"},
	"POST /v1/reservations":          {"/v1/reservations", `{"name":"r"}`, "401 403 403 403 409 409 403 403 403"},
	"DELETE /v1/reservations/{name}": {"/v1/reservations/none", "", "401 403 403 403 404 404 403 403 403"},
	"GET /v1/policy":                 {"/v1/policy", "", "401 403 403 403 200 200 403 403 403"},
	"POST /v1/what-if":               {"/v1/what-if", `{"set":["mode=fcfs"]}`, "401 403 403 403 200 200 403 403 403"},
	"GET /v1/audit":                  {"/v1/audit", "", "401 403 403 403 200 200 403 403 403"},

	"POST /v1/policy/check":             {"/v1/policy/check", "", "401 403 403 403 403 200 403 403 403"},
	"POST /v1/policy/reload":            {"/v1/policy/reload", "", "401 403 403 403 403 200 403 403 403"},
	"PUT /v1/projects/{name}":           {"/v1/projects/none", `{}`, "401 403 403 403 403 404 403 403 403"},
	"DELETE /v1/projects/{name}":        {"/v1/projects/none", "", "401 403 403 403 403 404 403 403 403"},
	"DELETE /v1/nodes/{name}/key":       {"/v1/nodes/none/key", "", "401 403 403 403 403 404 403 403 403"},
	"GET /v1/tokens":                    {"/v1/tokens?all=true", "", "401 403 403 403 403 200 403 403 403"},
	"POST /v1/tokens":                   {"/v1/tokens", `{"use":"join"}`, "401 403 403 403 403 200 403 403 403"},
	"DELETE /v1/tokens/{id}":            {"/v1/tokens/none", "", "401 404 404 404 404 404 403 403 403"},
	"POST /v1/nodes/{name}/join":        {"/v1/nodes/n3/join", `{}`, "401 403 403 403 403 403 403 403 400"},
	"POST /v1/streams/{id}":             {"/v1/streams/none", "", "401 403 403 403 403 403 404 404 403"},
	"GET /v1/streams/{id}":              {"/v1/streams/none", "", "401 403 403 403 403 403 404 404 403"},
	"POST /v1/nodes/{name}/sync":        {"/v1/nodes/n1/sync", `{"instance":"i-n1","inventoryHash":"h"}`, "401 403 403 403 403 403 200 403 403"},
	"POST /v1/nodes/{name}/logs":        {"/v1/nodes/n1/logs", `{}`, "401 403 403 403 403 403 200 403 403"},
	"POST /v1/nodes/{name}/steps":       {"/v1/nodes/n1/steps", `{}`, "401 403 403 403 403 403 400 403 403"},
	"POST /v1/nodes/{name}/certificate": {"/v1/nodes/n1/certificate", `{}`, "401 403 403 403 403 403 400 403 403"},

	"POST /v1/trees":             {"/v1/trees", `{"chunks":[]}`, "401 400 400 400 400 400 403 403 403"}, // a tree without chunks; and see internal/ctld/trees
	"PUT /v1/trees/chunks/{sum}": {"/v1/trees/chunks/none", "x", "401 400 400 400 400 400 403 403 403"},

	"GET /v1/nodes/{name}/jobs/{id}/trees/{tree}": {"/v1/nodes/n1/jobs/1/trees/none", "", "401 403 403 403 403 403 403 403 403"}, // the job is on no node

	"POST /v1/jobs/{id}/ports/{port}": {"/v1/jobs/1/ports/8888", "{}", "401 404 404 404 404 404 403 403 403"}, // no domain is named here; and see TestJobPortHostile

	"POST /v1/session":   {"/v1/session", "", "401 204 204 204 204 204 403 403 403"}, // and see TestLoginLink
	"DELETE /v1/session": {"/v1/session", "", "401 400 400 400 400 400 403 403 403"},

	"GET /web/": {"/web/", "", "404 404 404 404 404 404 404 404 404"}, // which tests are built without
	"GET /{$}":  {"/", "", "404 404 404 404 404 404 404 404 404"},

	"GET /v1/login":              {"/v1/login", "", "404 404 404 404 404 404 404 404 404"},
	"POST /v1/login":             {"/v1/login", `{"idToken":"x"}`, "404 404 404 404 404 404 404 404 404"},
	"GET /v1/login/page":         {"/v1/login/page", "", "404 404 404 404 404 404 404 404 404"}, // and see TestPageLogin of package login
	"POST /v1/login/page":        {"/v1/login/page", "", "404 404 404 404 404 404 404 404 404"},
	"POST /v1/login/page/return": {"/v1/login/page/return", `{"code":"x","state":"y"}`, "404 404 404 404 404 404 404 404 404"},
	"GET /healthz":               {"/healthz", "", "200 200 200 200 200 200 200 200 200"},
	"GET /v1/leader":             {"/v1/leader?not=c1", "", "200 200 200 200 200 200 200 200 200"},
	"GET /openapi.json":          {"/openapi.json", "", "200 200 200 200 200 200 200 200 200"},
	"GET /openapi.yaml":          {"/openapi.yaml", "", "200 200 200 200 200 200 200 200 200"},
	"GET /openapi-3.0.json":      {"/openapi-3.0.json", "", "200 200 200 200 200 200 200 200 200"},
	"GET /openapi-3.0.yaml":      {"/openapi-3.0.yaml", "", "200 200 200 200 200 200 200 200 200"},
	"/":                          {"/nothing", "", "404 404 404 404 404 404 404 404 404"},
}

// hushJob is a document all of whose private parts say hush.
const hushJob = `{"name":"hush-name","request":{"resources":{"gpus":0,"cpus":100,"cpuMemoryGb":1},` +
	`"docker":{"image":"hush-image:1","command":"hush-command","environment":{"HUSH":"hush-value"}}}}`

// closedSite has job 1, which is ann's, in a project of ann and mia.
func closedSite(t *testing.T) *testSite {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Members: byName("ann", "mia")}}
		c.Operators, c.Admins = byName("ops"), byName("boss")
	})
	if _, err := s.user("ann").Submit(t.Context(), &api.SubmitRequest{Project: "lab", Job: []byte(hushJob)}, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryRoute asks each route that the router has, as every kind of caller.
func TestEveryRoute(t *testing.T) {
	s := closedSite(t)
	secret := func(user string) string { return s.token(api.TokenRequest{Use: api.TokenUser, User: user}).Secret }
	columns := []column{
		{name: "nobody"}, {name: "ann", token: secret("ann")}, {name: "mia", token: secret("mia")}, {name: "eve", token: secret("eve")},
		{name: "ops", token: secret("ops")}, {name: "boss", token: secret("boss")},
		{name: "n1", cert: s.joined("n1").cert}, {name: "n2", cert: s.joined("n2").cert},
		{name: "join", token: s.token(api.TokenRequest{Use: api.TokenJoin}).Secret},
	}
	inside := []string{"ann", "mia", "ops", "boss"}
	var routes []string
	for _, r := range s.server.api.Table {
		routes = append(routes, r.Pattern)
	}
	for _, pattern := range routes {
		row, ok := matrix[pattern]
		if !ok {
			t.Errorf("%s has no line in the matrix: say who may use it", pattern)
			continue
		}
		method, _, found := strings.Cut(pattern, " ")
		if !found {
			method = "GET"
		}
		var got []string
		for _, c := range columns {
			status, text := c.do(t, s, method, row.path, row.body)
			got = append(got, fmt.Sprint(status))
			if strings.Contains(text, "hush") && !slices.Contains(inside, c.name) && !strings.Contains(row.body, "hush") {
				t.Errorf("%s shows %s what is not theirs: %s", pattern, c.name, text)
			}
		}
		if line := strings.Join(got, " "); line != row.want {
			t.Errorf("%s:\n got %s\nwant %s", pattern, line, row.want)
		}
	}
	for pattern := range matrix {
		if !slices.Contains(routes, pattern) {
			t.Errorf("%s is no route", pattern)
		}
	}
}

// TestOthersJobs: what a stranger to a project is told of its jobs, and cannot
// do to them; what a member can.
func TestOthersJobs(t *testing.T) {
	s := closedSite(t)
	eve, mia := s.user("eve"), s.user("mia")
	for name, f := range map[string]client.JobFilter{"all": {}, "by_name": {Name: "hush-name"}} {
		l, err := eve.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"all": 1, "by_name": 0}[name]; len(l.Jobs) != want {
			t.Errorf("%s: eve finds %d jobs, want %d", name, len(l.Jobs), want)
		}
		for _, j := range l.Jobs {
			if !j.Private || j.Name == "hush-name" || j.ReasonText != "" {
				t.Errorf("eve sees %+v", j)
			}
		}
	}
	d, err := eve.Job(t.Context(), "1", client.JobOptions{})
	if err != nil || d.Spec != nil || len(d.Events) != 0 || len(d.Attempts) != 0 {
		t.Errorf("eve is shown %+v, %v", d, err)
	}
	if d, err = mia.Job(t.Context(), "1", client.JobOptions{}); err != nil || d.Spec == nil || d.Name != "hush-name" {
		t.Errorf("mia is shown %+v, %v", d, err)
	}
	for _, action := range []string{"cancel", "hold", "release", "pause", "resume"} {
		r, err := eve.Action(t.Context(), action, &api.ActionRequest{IDs: []string{"1"}})
		if err != nil || len(r.Results) != 1 || r.Results[0].Error == nil || r.Results[0].Error.Code != api.CodeDenied {
			t.Errorf("eve's %s was answered %+v, %v", action, r, err)
		}
		r, err = eve.Action(t.Context(), action, &api.ActionRequest{User: "ann"})
		if err != nil || r.Matched != 0 {
			t.Errorf("eve's %s by filter matched %+v, %v", action, r, err)
		}
	}
	if r, err := mia.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{"1"}}); err != nil || r.Results[0].Error != nil {
		t.Errorf("mia's cancel was answered %+v, %v", r, err)
	}
	doc := bytes.Replace([]byte(hushJob), []byte("hush"), []byte("loud"), -1)
	if _, err := eve.Submit(t.Context(), &api.SubmitRequest{Project: "lab", Job: doc}, ""); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("eve's job in the project: %v", err)
	}
}
