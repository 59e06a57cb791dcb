package ctld

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// browser asks as a page does that was loaded from the address that from names;
// it tells the status and the cookie that it is to keep.
func (s *testSite) browser(method, path string, header http.Header) (int, *http.Cookie) {
	s.t.Helper()
	address, _, _ := strings.Cut(s.remote(), "#")
	r, err := http.NewRequestWithContext(s.t.Context(), method, address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = header
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if l := answer.Cookies(); len(l) > 0 {
		return answer.StatusCode, l[0]
	}
	return answer.StatusCode, nil
}

// session logs in by a token or by a link.
func (s *testSite) session(secret string) *http.Cookie {
	s.t.Helper()
	status, cookie := s.browser("POST", api.PathSession, http.Header{"Authorization": {"Bearer " + secret}})
	if status != http.StatusNoContent || cookie == nil {
		s.t.Fatalf("log in: %d, cookie %v", status, cookie)
	}
	return cookie
}

// of is what a browser sends along with a session.
func of(c *http.Cookie, from string) http.Header {
	return http.Header{"Cookie": {c.Name + "=" + c.Value}, "Sec-Fetch-Site": {from}}
}

// TestSessionCookie: what browsers keep is theirs alone, and counts only for
// pages of ours.
func TestSessionCookie(t *testing.T) {
	s := newSite(t, nil)
	c := s.session(s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret)
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("the cookie is %v", c)
	}
	origin, _, _ := strings.Cut(s.remote(), "#")
	tests := map[string]struct {
		header http.Header
		want   int
	}{
		"ours":            {of(c, "same-origin"), 200},
		"another_port":    {of(c, "same-site"), 401},
		"another_site":    {of(c, "cross-site"), 401},
		"address_bar":     {of(c, "none"), 401},
		"no_word":         {of(c, ""), 401},
		"websocket":       {http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {origin}}, 200},
		"their_websocket": {http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {"https://evil.example"}}, 401},
		"as_a_token":      {http.Header{"Authorization": {"Bearer " + c.Value}}, 401},
		"no_session":      {http.Header{"Cookie": {c.Name + "=x"}, "Sec-Fetch-Site": {"same-origin"}}, 401},
		"a_token_in_it": {http.Header{"Cookie": {c.Name + "=" + s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret},
			"Sec-Fetch-Site": {"same-origin"}}, 401},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if status, _ := s.browser("GET", api.PathStatus, tc.header); status != tc.want {
				t.Errorf("status %d, want %d", status, tc.want)
			}
		})
	}
}

// TestLoginLink: a link opens one session and nothing else, and what it opens ends
// with what it came from.
func TestLoginLink(t *testing.T) {
	s := newSite(t, nil)
	link := s.token(api.TokenRequest{Use: api.TokenLogin})
	bearer := http.Header{"Authorization": {"Bearer " + link.Secret}}
	if status, _ := s.browser("GET", api.PathStatus, bearer); status != http.StatusForbidden {
		t.Errorf("a link is used as a token: %d", status)
	}
	c := s.session(link.Secret)
	if status, _ := s.browser("POST", api.PathSession, bearer); status != http.StatusUnauthorized {
		t.Errorf("a link is used again: %d", status)
	}
	if status, _ := s.browser("GET", api.PathStatus, of(c, "same-origin")); status != 200 {
		t.Errorf("the session that it opened: %d", status)
	}
	if status, gone := s.browser("DELETE", api.PathSession, of(c, "same-origin")); status != http.StatusNoContent || gone == nil || gone.MaxAge >= 0 {
		t.Errorf("log out: %d, cookie %v", status, gone)
	}
	if status, _ := s.browser("GET", api.PathStatus, of(c, "same-origin")); status != http.StatusUnauthorized {
		t.Errorf("a session that was ended: %d", status)
	}
}

// TestLinkOfAnother: who has a session keeps it when they open a link that somebody
// else has sent, and their own link goes on.
func TestLinkOfAnother(t *testing.T) {
	s := newSite(t, nil)
	ann := s.session(s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret)
	eves := of(ann, "same-origin")
	eves.Set("Authorization", "Bearer "+s.token(api.TokenRequest{Use: api.TokenUser, User: "eve"}).Secret)
	if status, cookie := s.browser("POST", api.PathSession, eves); status != http.StatusConflict || cookie != nil {
		t.Errorf("eve's in ann's browser: %d, cookie %v", status, cookie)
	}
	again := of(ann, "same-origin")
	again.Set("Authorization", "Bearer "+s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret)
	if status, cookie := s.browser("POST", api.PathSession, again); status != http.StatusNoContent || cookie == nil {
		t.Errorf("ann's again: %d, cookie %v", status, cookie)
	}
}

// TestSessionsEndWithTheirToken: also those that a link opened which the token, or
// a session of it, had asked for.
func TestSessionsEndWithTheirToken(t *testing.T) {
	s := newSite(t, nil)
	token := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"})
	link, err := s.user("ann").CreateToken(t.Context(), api.TokenRequest{Use: api.TokenLogin})
	if err != nil {
		t.Fatal(err)
	}
	other := s.session(link.Secret) // of the token that user made
	asked := &client.Client{Address: s.remote(), Token: token.Secret}
	defer asked.Close()
	by := func() *api.Token { // a link that was asked for by the token
		t.Helper()
		l, err := asked.CreateToken(t.Context(), api.TokenRequest{Use: api.TokenLogin})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	opened := []*http.Cookie{s.session(token.Secret), s.session(by().Secret)}
	unused := by()
	if err := s.RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, c := range append(opened, other) {
		status, _ := s.browser("GET", api.PathStatus, of(c, "same-origin"))
		got = append(got, status)
	}
	status, _ := s.browser("POST", api.PathSession, http.Header{"Authorization": {"Bearer " + unused.Secret}})
	if diff := cmp.Diff([]int{401, 401, 200, 401}, append(got, status)); diff != "" {
		t.Errorf("sessions after the token was revoked, and a link (-want +got):\n%s", diff)
	}
}

// TestSessionDescribed: the API's description has how a session is opened and ended,
// with what the answer gives a browser.
func TestSessionDescribed(t *testing.T) {
	rec := httptest.NewRecorder()
	newSite(t, nil).server.api.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Responses   map[string]struct {
				Headers map[string]struct{ Schema struct{ Type string } }
			}
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for method, id := range map[string]string{"post": "open-session", "delete": "close-session"} {
		op := doc.Paths[api.PathSession][method]
		if op.OperationID != id || op.Responses["204"].Headers["Set-Cookie"].Schema.Type != "string" {
			t.Errorf("%s %s is described as %+v", method, api.PathSession, op)
		}
	}
}
