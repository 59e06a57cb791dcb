package access

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/munge"
)

// VisitCookie is by what a browser with a session is known at the host name of a job's
// port. It is good there and nowhere else, and no longer than its session.
const VisitCookie = "__Host-gbatch-port"

// visitUse is what such a text is for: no token's use has this form.
func visitUse(host string) string { return "visit " + host }

// Visit makes the cookie of a session for a host name.
func (a *Authenticator) Visit(session, host string) (*http.Cookie, *api.Error) {
	t, ok := a.keys.Token(session)
	now := a.now()
	if !ok || t.Use != api.TokenWeb || !t.Revoked.IsZero() || !now.Before(t.Expires) {
		return nil, api.Errorf(api.CodeUnauthorized, "the session has ended by which this was asked for").WithHint("log in on the page again")
	}
	text, err := a.keys.issueFor(t, visitUse(host))
	if err != nil {
		return nil, api.Errorf(api.CodeInternal, "the controller cannot sign")
	}
	return &http.Cookie{Name: VisitCookie, Value: text, Path: "/", MaxAge: int(t.Expires.Sub(now).Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}, nil
}

// Visitor is who a browser comes as to a host name, by what rights they have now, and
// until when.
func (a *Authenticator) Visitor(r *http.Request, host string) (id Identity, until time.Time, e *api.Error) {
	c, err := r.Cookie(VisitCookie)
	if err != nil {
		return id, until, api.Errorf(api.CodeUnauthorized, "this browser has not been let in here").WithHint("open the port on the page of its job")
	}
	t, e := a.keys.verifyFor(c.Value, a.now(), func(*token) string { return visitUse(host) })
	if e == nil && t.Use != api.TokenWeb {
		e = api.Errorf(api.CodeUnauthorized, "the token %s is no session", t.ID)
	}
	if e != nil {
		return id, until, e.WithHint("log in on the page again, and open the port on the page of its job")
	}
	id = Identity{User: t.User, Via: "session " + t.ID, Token: t.ID, Ended: t.ended}
	id.From, _, _ = net.SplitHostPort(r.RemoteAddr)
	id.Role = a.rights.roleOf(id)
	return id, t.Expires, nil
}

// StripOurs takes out of a request's headers what a user is known to the controller by.
func (a *Authenticator) StripOurs(h http.Header) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
			if part = strings.TrimSpace(part); part != "" && !IsOurs(name) {
				kept = append(kept, part)
			}
		}
	}
	if h.Del("Cookie"); len(kept) > 0 {
		h.Set("Cookie", strings.Join(kept, "; "))
	}
	if slices.ContainsFunc(h.Values("Authorization"), a.credential) {
		h.Del("Authorization")
	}
}

// credential says whether an Authorization header is for the controller.
func (a *Authenticator) credential(text string) bool {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	_, foreign := a.keys.claims(strings.TrimSpace(rest))
	return foreign == nil || strings.EqualFold(scheme+" ", munge.Scheme)
}

// IsOurs says whether a cookie is one of the controller's, by its name.
func IsOurs(name string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(name)), strings.ToLower(sessionCookie))
}
