package ctld

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
)

// TestLogin: a site without an identity provider says so; one whose provider does not
// answer refuses nobody, and who has a token goes on.
func TestLogin(t *testing.T) {
	none := newSite(t, nil)
	if _, err := client.LoginSite(t.Context(), none.Client); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("no provider: %v", err)
	}
	away := newSite(t, func(c *site.Config) { c.Login = &site.Login{Issuer: "http://127.0.0.1:1", ClientID: "gbatch"} })
	stranger := &client.Client{Address: away.remote()}
	defer stranger.Close()
	if _, err := client.Login(t.Context(), stranger, api.LoginRequest{IDToken: "x"}); !client.IsCode(err, api.CodeUnavailable) {
		t.Errorf("the provider is away: %v", err)
	}
	refused, ok := errors.AsType[*api.Error](second(stranger.Status(t.Context())))
	if !ok || refused.Hint != "log in by `gadm login`" {
		t.Errorf("who has no token is told %+v", refused)
	}
	if _, err := away.user("ann").Status(t.Context()); err != nil {
		t.Errorf("who has a token, while the provider is away: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestLoginNames: a name is one subject's while a token of theirs is on record, also a
// revoked one, and over restarts; the login is in the audit log.
func TestLoginNames(t *testing.T) {
	s := newSite(t, nil)
	enter := func(user, subject string) (*api.Token, error) {
		tokens := &access.Tokens{Conf: s.server.rules.Now, Keys: s.server.keys, Loop: s.server.loop, Now: time.Now}
		now := time.Now().UTC().Truncate(time.Second)
		return tokens.Enter(t.Context(), api.Token{User: user, Subject: subject, Created: now, Expires: now.Add(time.Hour)})
	}
	tok, err := enter("ann", "s-1")
	if err != nil {
		t.Fatal(err)
	}
	ann := &client.Client{Address: s.remote(), Token: tok.Secret}
	defer ann.Close()
	if st, err := ann.Status(t.Context()); err != nil || st.You != "ann" {
		t.Errorf("who has logged in is %+v, %v", st, err)
	}
	if _, err := enter("ann", "s-2"); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("another subject under the name: %v", err)
	}
	sessions := &access.Sessions{Tokens: &access.Tokens{Conf: s.server.rules.Now, Keys: s.server.keys, Loop: s.server.loop, Now: time.Now}}
	web := func(subject string) (*http.Cookie, error) {
		now := time.Now().UTC().Truncate(time.Second)
		return sessions.Enter(t.Context(), api.Token{User: "eve", Subject: subject, Created: now, Expires: now.Add(24 * time.Hour)})
	}
	c, err := web("s-3")
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := s.browser("GET", api.PathStatus, of(c, "same-origin")); status != http.StatusOK || c.MaxAge > 12*3600 {
		t.Errorf("the session of a login on the page: %d, for %d seconds", status, c.MaxAge)
	}
	if _, err := web("s-4"); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("another subject under the name of one who has a session: %v", err)
	}
	if err := ann.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	if _, err := enter("ann", "s-2"); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("another subject under the name of one who logged out: %v", err)
	}
	if _, err := enter("ann", "s-1"); err != nil {
		t.Errorf("the same again: %v", err)
	}
	l, err := s.Audit(t.Context(), client.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range l.Entries {
		found = found || e.User == "ann" && e.Via == "login"
	}
	if !found {
		t.Errorf("the audit log has no login: %+v", l.Entries)
	}
}
