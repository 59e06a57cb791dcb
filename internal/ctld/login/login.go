// Package login gives tokens to those whom the site's identity provider knows. It
// verifies what the provider signed, by the provider's keys, which it keeps; what the
// rules say of the provider, package site has, and tokens are made by package access.
package login

import (
	"context"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/site"
)

// Handlers serve those who log in.
type Handlers struct {
	conf     func() *site.Config
	sessions *access.Sessions
	uid      func(user string) *uint32 // of an account on this machine; nil: there is none
	now      func() time.Time
	returns  *places.Gate // of those who came back, and for whom the provider is asked

	mu       sync.Mutex
	provider *provider // of the issuer that was asked last; nil: it did not answer
	failed   error     // as this
	asked    time.Time
}

// New serves those who log in by the rules in force.
func New(conf func() *site.Config, sessions *access.Sessions, uid func(user string) *uint32, now func() time.Time) *Handlers {
	return &Handlers{conf: conf, sessions: sessions, uid: uid, now: now, returns: places.NewGate(returnsAtOnce, returnsWaiting)}
}

type where struct{}

// Site says where to log in.
func (h *Handlers) Site(ctx context.Context, _ *where) (*api.LoginSite, error) {
	l, p, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	e := p.Endpoint()
	if e.DeviceAuthURL == "" {
		return nil, api.Errorf(api.CodeUnavailable, "the identity provider %s has no device flow", l.Issuer).WithHint("tell your operator; `gadm token create` on the controller's machine makes a token")
	}
	return &api.LoginSite{Issuer: l.Issuer, ClientID: l.ClientID, Scopes: p.scopes(l), DeviceEndpoint: e.DeviceAuthURL, TokenEndpoint: e.TokenURL}, nil
}

type loginInput struct{ Body api.LoginRequest }

// Enter makes a token for who has logged in.
func (h *Handlers) Enter(ctx context.Context, in *loginInput) (*api.Token, error) {
	l, p, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	t, _, err := h.proven(ctx, l, p, in.Body.IDToken)
	if err != nil {
		return nil, err
	}
	return h.sessions.Tokens.Enter(ctx, t)
}

// proven is what the user of an ID token is to have, and the nonce of the token.
func (h *Handlers) proven(ctx context.Context, l *site.Login, p *provider, raw string) (t api.Token, nonce string, err error) {
	who, err := p.verify(ctx, l, raw, h.now())
	if err != nil {
		return t, "", err
	}
	if uid := h.uid(who.name); who.name == "root" || uid != nil && *uid < firstPerson {
		return t, "", api.Errorf(api.CodeDenied, "%s is an account of the system on the controller's machine, and nobody's to log in as", who.name)
	}
	now := h.now().UTC().Truncate(time.Second)
	return api.Token{User: who.name, Subject: who.subject, Created: now, Expires: now.Add(time.Duration(l.TokenLife) * time.Second)}, who.nonce, nil
}

// firstPerson is the first number that accounts of people have.
const firstPerson = 1000

// open is the provider of the rules in force. One that cannot be asked is asked again
// by the next who comes; one that is known serves on while it cannot.
func (h *Handlers) open(ctx context.Context) (*site.Login, *provider, error) {
	l := h.conf().Login
	if l == nil {
		return nil, nil, api.Errorf(api.CodeNotFound, "this site has no identity provider to log in at").WithHint("get a token by `gadm token create --save` on the controller's machine")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.provider != nil && h.provider.issuer != l.Issuer {
		h.provider, h.asked = nil, time.Time{}
	}
	if h.provider == nil && h.now().Sub(h.asked) >= askEvery {
		h.asked = h.now()
		h.provider, h.failed = newProvider(ctx, l.Issuer, h.now)
	}
	if h.provider == nil {
		return nil, nil, unreachable(l.Issuer, h.failed)
	}
	return l, h.provider, nil
}

func unreachable(issuer string, err error) error {
	return api.Errorf(api.CodeUnavailable, "the identity provider %s cannot be asked: %v", issuer, err).
		WithHint("who is logged in goes on until their token expires; try again, and if it stays so tell your operator")
}
