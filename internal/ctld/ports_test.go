package ctld

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
)

// TestJobPort: the browser of somebody who may enter a job gets what that serves, at a
// host name of its own, and the job learns nothing by which they are known.
func TestJobPort(t *testing.T) {
	s := serving(t, nil)
	l, _ := s.link(s.sessionOf("mia"), 8888, "/lab?token=abc")
	if want := ".jobs.example.org"; !strings.HasPrefix(l.Host, "8888-0-1-") || !strings.HasSuffix(l.Host, want) {
		t.Errorf("the host is %s", l.Host)
	}
	if answer, text := s.get(l.Host, nil, "/.gbatch/enter", "cross-site"); answer.StatusCode != 200 || !strings.Contains(text, "/.gbatch/enter.js") ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the door: %d %s", answer.StatusCode, text)
	}
	r := s.request("POST", l.Host, "/.gbatch/enter", strings.NewReader(l.Secret))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, path := s.send(r)
	if answer.StatusCode != 200 || path != "/lab?token=abc" {
		t.Fatalf("to enter: %d %s", answer.StatusCode, path)
	}
	c := answer.Cookies()[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("the cookie is %v", c)
	}
	if _, status := s.enter(l.Host, l.Secret, "same-origin"); status != http.StatusUnauthorized {
		t.Errorf("a link is used again: %d", status)
	}

	r = s.request("POST", l.Host, "/api?x=1", strings.NewReader("body"))
	r.Header.Set("Origin", "https://"+l.Host)
	r.Header.Set("Referer", "https://"+l.Host+"/lab")
	r.Header.Set("Authorization", "Bearer "+s.token(api.TokenRequest{Use: api.TokenUser, User: "mia"}).Secret)
	r.Header.Set("Cookie", "theirs=1; "+c.Name+"="+c.Value+"; __Host-gbatch=session; other=2")
	if answer, text := s.send(r); answer.StatusCode != 200 || text != "job says POST body" || answer.Header.Get("Origin-Agent-Cluster") != "?1" {
		t.Errorf("a request: %d %s", answer.StatusCode, text)
	}
	got := s.heard[len(s.heard)-1]
	want := map[string]string{"Cookie": "theirs=1; other=2", "Authorization": "", "Origin": "http://localhost:8888", "Referer": "http://localhost:8888/lab", "X-Forwarded-Host": l.Host, "X-Forwarded-Proto": "https"}
	for name, value := range want {
		if diff := cmp.Diff(value, strings.Join(got.Header.Values(name), "|")); diff != "" {
			t.Errorf("the job's header %s (-want +got):\n%s", name, diff)
		}
	}
	if got.Host != "localhost:8888" || got.URL.String() != "/api?x=1" {
		t.Errorf("the job was asked for %s of %s", got.URL, got.Host)
	}
	r = s.request("GET", l.Host, "/", nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Authorization", "token its-own")
	r.AddCookie(c)
	if s.send(r); s.heard[len(s.heard)-1].Header.Get("Authorization") != "token its-own" {
		t.Error("what the job's own page says to the job is lost")
	}
	list, err := s.Audit(t.Context(), client.AuditFilter{})
	if err != nil || !slices.ContainsFunc(list.Entries, func(e api.AuditEntry) bool {
		return e.User == "mia" && e.Object == "job 1" && strings.HasPrefix(e.Change, "entered by port 8888")
	}) {
		t.Errorf("the audit log has %+v, %v", list, err)
	}
}

// TestJobPortHostile: neither pages elsewhere, nor other users, nor the job itself get
// anything by it that they have not.
func TestJobPortHostile(t *testing.T) {
	s := serving(t, nil)
	mia := s.sessionOf("mia")
	host, c := s.opened(mia)
	other := "8889" + strings.TrimPrefix(host, "8888")
	eve := s.sessionOf("eve")
	if _, status := s.link(eve, 8888, ""); status != http.StatusForbidden {
		t.Errorf("a link to another's job: %d", status)
	}
	l, _ := s.link(mia, 8888, "")
	tests := map[string]struct {
		host, path, from string
		cookie           *http.Cookie
		want             int
	}{
		"ours":                 {host, "/", "same-origin", c, 200},
		"the_address_bar":      {host, "/", "none", c, 200},
		"another_jobs_page":    {host, "/", "same-site", c, 403},
		"another_site":         {host, "/", "cross-site", c, 403},
		"no_word_of_where":     {host, "/", "", c, 403},
		"nobody":               {host, "/", "same-origin", nil, 401},
		"a_session":            {host, "/", "same-origin", &http.Cookie{Name: c.Name, Value: mia.Value}, 401},
		"another_port":         {other, "/", "same-origin", c, 401},
		"another_domain":       {strings.Replace(host, "jobs", "jobz", 1), "/v1/status", "same-origin", c, 401},
		"the_api_there":        {host, "/v1/status", "same-origin", mia, 401},
		"the_page_there":       {host, "/web/", "same-origin", nil, 401},
		"what_is_no_place":     {"x." + jobsDomain, "/v1/status", "same-origin", c, 401},
		"its_cookie_at_theapi": {"", "/v1/status", "same-origin", &http.Cookie{Name: "__Host-gbatch", Value: c.Value}, 401},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if answer, text := s.get(tc.host, tc.cookie, tc.path, tc.from); answer.StatusCode != tc.want {
				t.Errorf("status %d, want %d: %s", answer.StatusCode, tc.want, text)
			}
		})
	}
	for from, want := range map[string]int{"same-site": 403, "cross-site": 403, "": 403} {
		if _, status := s.enter(l.Host, l.Secret, from); status != want {
			t.Errorf("a link used by a page of %q: %d", from, status)
		}
	}
	if _, status := s.enter(other, l.Secret, "same-origin"); status != http.StatusUnauthorized {
		t.Errorf("a link to another port: %d", status)
	}
	for _, path := range []string{"//evil.example/", `/\evil.example`, "evil", "/.gbatch/enter", "/a b", "/#x"} {
		if _, status := s.link(mia, 8888, path); status != http.StatusBadRequest {
			t.Errorf("path %q: %d", path, status)
		}
	}

	answer, _ := s.get(host, c, "/evil", "same-origin")
	if diff := cmp.Diff([]string{"a=1; Path=/", "b=2; HttpOnly"}, answer.Header.Values("Set-Cookie")); diff != "" {
		t.Errorf("cookies of the job (-want +got):\n%s", diff)
	}
	for _, name := range []string{"Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc"} {
		if got := answer.Header.Get(name); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := answer.Header.Get("Location"); got != "https://"+host+"/next" {
		t.Errorf("the job leads to %s", got)
	}
}

// TestJobPortSockets: WebSockets go both ways, and end with the session and with the job.
func TestJobPortSockets(t *testing.T) {
	s := serving(t, nil)
	ends := map[string]func(session *http.Cookie){
		"log_out": func(session *http.Cookie) {
			if status, _ := s.browser("DELETE", api.PathSession, of(session, "same-origin")); status != http.StatusNoContent {
				t.Errorf("log out: %d", status)
			}
		},
		"revoked": func(session *http.Cookie) {
			list, err := s.Tokens(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list.Tokens {
				if k.User == "mia" && k.Use == api.TokenUser {
					if err := s.RevokeToken(t.Context(), k.ID); err != nil {
						t.Error(err)
					}
				}
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			session := s.sessionOf("mia")
			host, c := s.opened(session)
			if _, err := s.dial(host, c, "https://other."+jobsDomain); err == nil {
				t.Error("a page of another job opened a WebSocket")
			}
			conn, err := s.dial(host, c, "https://"+host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			if err := conn.Write(t.Context(), websocket.MessageText, []byte("me")); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "heard me" {
				t.Fatalf("%q, %v", got, err)
			}
			end(session)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("after the session's end: %v", err)
			}
			if answer, _ := s.get(host, c, "/", "same-origin"); answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("after the session's end: status %d", answer.StatusCode)
			}
			waitFor(t, "all streams have ended", func() bool { return s.server.streams.Count() == 0 })
		})
	}
	session := s.sessionOf("mia")
	l, _ := s.link(session, 8888, "")
	ends["log_out"](session)
	if _, status := s.enter(l.Host, l.Secret, "same-origin"); status != http.StatusUnauthorized {
		t.Errorf("a link whose session has ended: %d", status)
	}
}

// TestJobPortEnds: nothing is shown of a job that has ended, and its end is told.
func TestJobPortEnds(t *testing.T) {
	s := serving(t, nil)
	session := s.sessionOf("mia")
	host, c := s.opened(session)
	l, _ := s.link(session, 9, "")
	nine, _ := s.enter(l.Host, l.Secret, "same-origin")
	r := s.request("GET", l.Host, "/", nil)
	r.Header.Set("Sec-Fetch-Site", "none")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.AddCookie(nine)
	if answer, text := s.send(r); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "nothing listens") || answer.Header.Get("Refresh") == "" {
		t.Errorf("where nothing listens: %d %s", answer.StatusCode, text)
	}
	if _, err := s.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	s.quiet()
	s.n.sync(nil)
	for id := range s.n.held {
		s.n.report(id, node.PhaseEnded, &node.Exit{Code: 143})
	}
	waitFor(t, "the job has ended", func() bool { return s.job("1").State.Final() })
	if answer, text := s.get(host, c, "/", "same-origin"); answer.StatusCode != http.StatusConflict && answer.StatusCode != http.StatusNotFound {
		t.Errorf("after the job's end: %d %s", answer.StatusCode, text)
	}
	if _, status := s.link(session, 8888, ""); status != http.StatusConflict {
		t.Errorf("a link to a job that has ended: %d", status)
	}
}

// TestJobPortRestart: a notebook that is open goes on when the controller was restarted;
// links that were not used are gone.
func TestJobPortRestart(t *testing.T) {
	s := serving(t, nil)
	session := s.sessionOf("mia")
	host, c := s.opened(session)
	l, _ := s.link(session, 8888, "")
	s.quiet()
	s.stop()
	s.start()
	s.n.sync(&node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, Gang: true, CPUs: 8, MemBytes: 32 << 30})
	s.answers()
	if _, status := s.enter(l.Host, l.Secret, "same-origin"); status != http.StatusUnauthorized {
		t.Errorf("a link of before: %d", status)
	}
	waitFor(t, "the job's port is shown", func() bool {
		answer, _ := s.get(host, c, "/", "same-origin")
		return answer.StatusCode == http.StatusOK
	})
}

// TestJobPortBounds: one user has so many connections to jobs as they may have streams,
// and the controller tells of no port where no domain is named.
func TestJobPortBounds(t *testing.T) {
	s := serving(t, func(c *site.Config) { c.Limits.PerUser.Streams = 2 })
	host, c := s.opened(s.sessionOf("mia"))
	var open []*websocket.Conn
	for range 2 {
		conn, err := s.dial(host, c, "https://"+host)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	if answer, text := s.get(host, c, "/", "same-origin"); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a third connection: %d %s", answer.StatusCode, text)
	}
	for _, conn := range open {
		_ = conn.CloseNow()
	}
	waitFor(t, "there is room again", func() bool {
		answer, _ := s.get(host, c, "/", "same-origin")
		return answer.StatusCode == http.StatusOK
	})

	off := newSite(t, nil)
	link := off.session(off.token(api.TokenRequest{Use: api.TokenLogin}).Secret)
	if status, _ := off.browser("POST", "/v1/jobs/1/ports/8888", of(link, "same-origin")); status < 400 {
		t.Errorf("where no domain is named: %d", status)
	}
}
