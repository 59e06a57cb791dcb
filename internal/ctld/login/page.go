package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
)

// loginCookie keeps a browser's secret of a login that has begun, until it comes
// back from the provider. What is shown to the provider follows from it, so that
// nothing of a login is kept here.
const loginCookie = "__Host-gbatch-login"

const (
	returnTime     = 10 * time.Minute // between the begin of a login and the browser's return
	returnsAtOnce  = 16               // for whom the provider is asked at the same time
	returnsWaiting = 256              // who wait for that, by turns of their addresses
)

// Pages says at which addresses the page can log its users in.
func (h *Handlers) Pages(context.Context, *where) (*api.LoginPages, error) {
	l := h.conf().Login
	if l == nil || len(l.Pages) == 0 {
		return nil, noPages()
	}
	return &api.LoginPages{Issuer: l.Issuer, Pages: l.Pages}, nil
}

func noPages() error {
	return api.Errorf(api.CodeNotFound, "the web page has no login at an identity provider here").WithHint("`gadm web` prints a link that logs in; operators: login.pages in gctld.yaml")
}

type beginInput struct {
	Origin string `header:"Origin" doc:"of the page, as browsers say it"`
}

// Begin says where the page's user is to log in.
func (h *Handlers) Begin(ctx context.Context, in *beginInput) (*http.Cookie, *api.LoginAddress, error) {
	l, _, flow, err := h.flow(ctx, in.Origin)
	if err != nil {
		return nil, nil, err
	}
	secret := rand.Text()
	address := flow.AuthCodeURL(part(secret, "state"), oidc.Nonce(part(secret, "nonce")), oauth2.S256ChallengeOption(part(secret, "verifier")))
	if !reachable(l, address) {
		return nil, nil, unfit(l.Issuer, "for logins")
	}
	return &http.Cookie{Name: loginCookie, Value: secret, Path: "/", MaxAge: int(returnTime.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode},
		&api.LoginAddress{Address: address}, nil
}

type returnInput struct {
	Origin string `header:"Origin" doc:"of the page, as browsers say it"`
	Secret string `cookie:"__Host-gbatch-login" doc:"of this login, from where it was begun"`
	Body   api.LoginReturn
}

// Return gives a session to the browser that comes back from the provider, if it is
// the one that began this login.
func (h *Handlers) Return(ctx context.Context, in *returnInput) (*http.Cookie, error) {
	l, p, flow, err := h.flow(ctx, in.Origin)
	if err != nil {
		return nil, err
	}
	if in.Secret == "" || subtle.ConstantTimeCompare([]byte(in.Body.State), []byte(part(in.Secret, "state"))) != 1 {
		return nil, refusedReturn("this login was begun in another browser, or more than %d minutes ago", int(returnTime.Minutes()))
	}
	if !reachable(l, flow.Endpoint.TokenURL) {
		return nil, unfit(l.Issuer, "for codes")
	}
	leave, ok := h.returns.Enter(ctx, access.Caller(ctx).From)
	if !ok {
		return nil, api.Errorf(api.CodeUnavailable, "too many log in at this moment").WithHint("try again in a few seconds")
	}
	defer leave()
	raw, err := h.exchange(ctx, l, flow, in.Body.Code, part(in.Secret, "verifier"))
	if err != nil {
		return nil, err
	}
	t, nonce, err := h.proven(ctx, l, p, raw)
	if err != nil {
		return nil, err
	}
	if nonce != part(in.Secret, "nonce") {
		return nil, refusedReturn("the provider's token is of another login")
	}
	return h.sessions.Enter(ctx, t)
}

// flow is how the page of that origin has its users log in.
func (h *Handlers) flow(ctx context.Context, origin string) (*site.Login, *provider, *oauth2.Config, error) {
	if l := h.conf().Login; l == nil || len(l.Pages) == 0 {
		return nil, nil, nil, noPages()
	}
	l, p, err := h.current(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	at := slices.IndexFunc(l.Pages, func(page string) bool { return origin != "" && page == origin+"/web/" })
	if at < 0 {
		return nil, nil, nil, api.Errorf(api.CodeDenied, "a login at %s is begun on the web page at %s, and not from %q", l.Issuer, strings.Join(l.Pages, ", "), origin)
	}
	scopes := slices.DeleteFunc(slices.Clone(p.scopes(l)), func(s string) bool { return s == oidc.ScopeOfflineAccess }) // a session is not renewed
	e := p.Endpoint()
	e.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret
	return l, p, &oauth2.Config{ClientID: l.ClientID, Endpoint: e, RedirectURL: l.Pages[at], Scopes: scopes}, nil
}

// part is what stands for a login at one place: it follows from its secret, and
// leads neither to that nor to the other parts.
func part(secret, name string) string {
	m := hmac.New(sha256.New, []byte(secret))
	_, _ = m.Write([]byte(name)) // to memory
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// exchange gets the ID token that a code stands for.
func (h *Handlers) exchange(ctx context.Context, l *site.Login, flow *oauth2.Config, code, verifier string) (string, error) {
	said, err := flow.Exchange(oidc.ClientContext(ctx, newClient(l, nil)), code, oauth2.VerifierOption(verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if refused.ErrorCode == "invalid_grant" {
			return "", refusedReturn("the provider does not take the code of this login: it was used, or is too old")
		}
		return "", api.Errorf(api.CodeUnavailable, "the identity provider %s gives no token for a code: it answers %s %.40q", l.Issuer, refused.Response.Status, refused.ErrorCode).
			WithHint("tell your operator; `gadm web` prints a link that logs in without it")
	}
	if err != nil {
		return "", h.unreachable(l.Issuer, err)
	}
	raw, ok := said.Extra("id_token").(string)
	if !ok {
		return "", api.Errorf(api.CodeUnavailable, "the identity provider %s did not say who you are: it sent no ID token", l.Issuer).WithHint("tell your operator")
	}
	return raw, nil
}

// reachable says whether an address that the provider names is one to send browsers
// and codes to: nothing that browsers would run, and with TLS where it itself has it.
func reachable(l *site.Login, address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(l.Issuer, "http:"))
}

func unfit(issuer, what string) error {
	return api.Errorf(api.CodeUnavailable, "the identity provider %s names no address %s that can be used: want https://…", issuer, what).WithHint("tell your operator; `gadm web` prints a link that logs in without it")
}

func refusedReturn(format string, args ...any) error {
	return api.Errorf(api.CodeUnauthorized, format, args...).WithHint("log in again")
}
