package access

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/state"
)

// sessionLife is how long a session lives at most; one that was opened by a token
// ends with that.
const sessionLife = 12 * time.Hour

// sessionCookie keeps a browser's session. By the prefix of its name browsers hold
// us to what matters: no other host, no other path, never in clear.
const sessionCookie = "__Host-gbatch"

// sessionOf is the session that a request comes with; empty: it has none, or
// another site's page may have sent it. Cookies go by site, and other ports of this
// machine are of the same one, so that it is asked of each request, to read too.
func sessionOf(r *http.Request) string {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	from := r.Header.Get("Sec-Fetch-Site")
	if from == "same-origin" || from == "" && r.Header.Get("Origin") == "https://"+r.Host {
		return c.Value
	}
	return ""
}

func (a *Authenticator) bySession(raw string) (Identity, *api.Error) {
	t, e := a.keys.verify(raw, a.now())
	if t == nil {
		return Identity{Via: "session"}, e
	}
	id := Identity{User: t.User, Via: "session " + t.ID, Token: t.ID, Ended: t.ended}
	if e == nil && t.Use != api.TokenWeb {
		e = api.Errorf(api.CodeUnauthorized, "the token %s is no session", t.ID)
	}
	if e != nil {
		e = e.WithHint("log in again")
	}
	return id, e
}

// Sessions opens and ends the sessions of browsers.
type Sessions struct{ Tokens *Tokens }

// Open gives a browser a session: by a token, or by a link of `gadm web`, which is
// then used up. Who has a session of their own keeps it: a link may be somebody
// else's, by which one would give them what one types.
func (s *Sessions) Open(ctx context.Context, _ *struct{}) (*http.Cookie, error) {
	id := Caller(ctx)
	if id.Token == "" || strings.HasPrefix(id.Via, "session ") {
		return nil, api.Errorf(api.CodeBadRequest, "a session is opened by a token").WithHint("send it in the header Authorization")
	}
	if id.browser != "" && id.browser != id.User {
		return nil, api.Errorf(api.CodeConflict, "this browser is logged in as %s, and the link or token is %s's", id.browser, id.User).WithHint("log out first")
	}
	t, secret, err := s.open(ctx, id)
	if err != nil {
		return nil, err
	}
	return cookie(secret, int(t.Expires.Sub(s.Tokens.Now()).Seconds())), nil
}

// Enter gives a browser the session of a user who has logged in at the site's identity
// provider.
func (s *Sessions) Enter(ctx context.Context, t api.Token) (*http.Cookie, error) {
	t.ID, t.Use, t.By, t.Note = rand.Text()[:12], api.TokenWeb, t.User, "login"
	if longest := t.Created.Add(sessionLife); longest.Before(t.Expires) {
		t.Expires = longest
	}
	made, err := s.Tokens.give(WithCaller(ctx, Identity{User: t.User, Role: RoleUser, Via: "login", From: Caller(ctx).From}, "POST "+api.PathLoginReturn), t)
	if err != nil {
		return nil, err
	}
	return cookie(made.Secret, int(t.Expires.Sub(s.Tokens.Now()).Seconds())), nil
}

func (s *Sessions) open(ctx context.Context, id Identity) (t api.Token, secret string, err error) {
	keys := s.Tokens.Keys
	keys.Change.Lock()
	defer keys.Change.Unlock()
	by, ok := keys.Token(id.Token)
	if !ok || !by.Revoked.IsZero() { // since it was asked who calls
		return t, "", api.Errorf(api.CodeUnauthorized, "the token %s was revoked, or used", id.Token).WithHint("get a new one by `gadm web`")
	}
	now := s.Tokens.Now().UTC().Truncate(time.Second)
	t = api.Token{ID: rand.Text()[:12], Use: api.TokenWeb, User: by.User, Created: now, Expires: now.Add(sessionLife), By: by.User}
	live, old := keys.list(now)
	var changed []api.Token
	if by.Use == api.TokenLogin {
		by.Left, by.Revoked = 0, now
		changed = append(changed, by)
		t.Of = by.Of
	} else {
		t.Of = by.ID
	}
	if of, ok := keys.Token(t.Of); ok && of.Expires.Before(t.Expires) {
		t.Expires = of.Expires
	}
	if err := s.Tokens.tooMany(t, live); err != nil {
		return t, "", err
	}
	if secret, err = keys.issue(t); err != nil {
		return t, "", err
	}
	changed = append(changed, t)
	records := append([]state.Record{}, old...)
	for _, x := range changed {
		records = append(records, TokenRecord(x))
	}
	if err := s.Tokens.Loop.Commit(ctx, "session "+t.ID, "for "+t.User+", until "+t.Expires.Format(time.RFC3339), records...); err != nil {
		return t, "", err
	}
	for _, x := range changed {
		keys.PutToken(x)
	}
	return t, secret, nil
}

// Close ends the session that the request came with.
func (s *Sessions) Close(ctx context.Context, _ *struct{}) (*http.Cookie, error) {
	keys := s.Tokens.Keys
	keys.Change.Lock()
	defer keys.Change.Unlock()
	t, ok := keys.Token(Caller(ctx).Token)
	if !ok || t.Use != api.TokenWeb {
		return nil, api.Errorf(api.CodeBadRequest, "this request came with no session").WithHint("revoke a token by `gadm token revoke`")
	}
	if err := s.Tokens.revoke(ctx, t); err != nil {
		return nil, err
	}
	return cookie("", -1), nil
}

// cookie is the session as a browser keeps it. A negative age takes it away.
func cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
