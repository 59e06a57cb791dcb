// Package login gives tokens to those whom the site's identity provider knows. It
// verifies what the provider signed, by the provider's keys, which it keeps; what the
// rules say of the provider, package site has, and tokens are made by package access.
package login

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/site"
)

// Handlers serve those who log in.
type Handlers struct {
	conf     func() *site.Config
	sessions *access.Sessions
	account  func(user string) (*uint32, *api.Error) // its number on this machine; nil: there is none
	now      func() time.Time
	returns  *places.Gate // of those who came back, and for whom the provider is asked

	away   notice.Notice // why the provider cannot be asked: strangers are told little of it
	asking chan struct{} // has who asks the provider, and guards what follows

	provider *provider // as it was asked last; nil: it did not answer
	failed   error     // as this
	asked    time.Time // the answer, or that there was none
}

// Options are what logins are decided by.
type Options struct {
	Conf     func() *site.Config
	Sessions *access.Sessions
	Account  func(user string) (*uint32, *api.Error) // its number on this machine; nil: there is none
	Now      func() time.Time
	Log      *slog.Logger
}

// New serves those who log in by the rules in force.
func New(o Options) *Handlers {
	return &Handlers{conf: o.Conf, sessions: o.Sessions, account: o.Account, now: o.Now, returns: places.NewGate(returnsAtOnce, returnsWaiting), asking: make(chan struct{}, 1),
		away: notice.Notice{Log: o.Log, Level: slog.LevelWarn, Text: "the identity provider cannot be asked", Over: "the identity provider answers again"}}
}

type where struct{}

// Site says where to log in.
func (h *Handlers) Site(ctx context.Context, _ *where) (*api.LoginSite, error) {
	l, p, err := h.current(ctx)
	if err != nil {
		return nil, err
	}
	e := p.Endpoint()
	if e.DeviceAuthURL == "" {
		return nil, api.Errorf(api.CodeUnavailable, "the identity provider %s has no device flow", l.Issuer).WithHint("tell your operator; `gadm token create` on the controller's machine makes a token")
	}
	if !reachable(l, e.DeviceAuthURL) || !reachable(l, e.TokenURL) {
		return nil, unfit(l.Issuer, "for the device flow")
	}
	return &api.LoginSite{Issuer: l.Issuer, ClientID: l.ClientID, Scopes: p.scopes(l), DeviceEndpoint: e.DeviceAuthURL, TokenEndpoint: e.TokenURL}, nil
}

type loginInput struct{ Body api.LoginRequest }

// Enter makes a token for who has logged in.
func (h *Handlers) Enter(ctx context.Context, in *loginInput) (*api.Token, error) {
	l, p, err := h.current(ctx)
	if err != nil {
		return nil, err
	}
	t, nonce, err := h.proven(ctx, l, p, in.Body.IDToken)
	if err != nil {
		return nil, err
	}
	if nonce != "" { // the device flow has none
		return nil, api.Errorf(api.CodeUnauthorized, "the provider's token is of a login on a web page").WithHint("log in again: gadm login")
	}
	return h.sessions.Tokens.Enter(ctx, t)
}

// proven is what the user of an ID token is to have, and the nonce of the token.
func (h *Handlers) proven(ctx context.Context, l *site.Login, p *provider, raw string) (t api.Token, nonce string, err error) {
	who, err := p.verify(ctx, l, raw, h.now())
	if err != nil {
		return t, "", err
	}
	if madeName.MatchString(who.name) {
		return t, "", api.Errorf(api.CodeDenied, "%s is what a number without a name is called here, and nobody's to log in as", who.name)
	}
	uid, failed := h.account(who.name)
	if failed != nil {
		return t, "", failed
	}
	if who.name == "root" || uid != nil && *uid < firstPerson {
		return t, "", api.Errorf(api.CodeDenied, "%s is an account of the system on the controller's machine, and nobody's to log in as", who.name)
	}
	now := h.now().UTC().Truncate(time.Second)
	return api.Token{User: who.name, Subject: who.subject, Created: now, Expires: now.Add(time.Duration(l.TokenLife) * time.Second)}, who.nonce, nil
}

// firstPerson is the first number that accounts of people have.
const firstPerson = 1000

// madeName is what package access calls numbers that have no name.
var madeName = regexp.MustCompile(`^uid[0-9]+$`)

// current is the provider of the rules in force. One that cannot be asked is asked again
// by the next who comes; one that is known serves on while it cannot.
func (h *Handlers) current(ctx context.Context) (*site.Login, *provider, error) {
	l := h.conf().Login
	if l == nil {
		return nil, nil, api.Errorf(api.CodeNotFound, "this site has no identity provider to log in at").WithHint("get a token by `gadm token create --save` on the controller's machine")
	}
	select { // whoever left does not wait on for a provider that hangs
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if h.provider != nil && (h.provider.issuer != l.Issuer || !slices.Equal(h.provider.hosts, l.Hosts)) {
		h.provider, h.asked = nil, time.Time{}
	}
	if h.provider == nil && h.now().Sub(h.asked) >= askEvery {
		h.provider, h.failed = newProvider(ctx, l, h.now, h.unreachable)
		h.asked = h.now() // those who waited meanwhile do not ask each in turn
	}
	if h.provider == nil {
		return nil, nil, h.unreachable(l.Issuer, h.failed)
	}
	h.away.Ended("issuer", l.Issuer)
	return l, h.provider, nil
}

func (h *Handlers) unreachable(issuer string, err error) error {
	h.away.Happened("issuer", issuer, "error", err)
	return api.Errorf(api.CodeUnavailable, "the identity provider %s cannot be asked: %s", issuer, why(err)).
		WithHint("who is logged in goes on until their token expires; try again, and if it stays so tell your operator")
}
