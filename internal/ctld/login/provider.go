package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
)

// provider is what is known of an identity provider: where its parts are, and its
// keys, which are kept.
type provider struct {
	*oidc.Provider
	issuer string
	has    []string // the scopes that it says it has; empty: it says nothing of them
}

const (
	askTime = 10 * time.Second // for an answer of the provider
	// askEvery is how often keys are fetched at most: a token that names a key which is
	// not known has them fetched again, and strangers can make such tokens.
	askEvery = 10 * time.Second
	maxToken = 16 << 10 // bytes of an ID token
)

func newProvider(ctx context.Context, issuer string, now func() time.Time) (*provider, error) {
	client := &http.Client{Timeout: askTime, Transport: &seldom{now: now, asked: map[string]time.Time{}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// What is kept outlives the request that asked for it first.
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), issuer)
	if err != nil {
		return nil, err
	}
	var said struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := p.Claims(&said); err != nil {
		return nil, err
	}
	return &provider{p, issuer, said.Scopes}, nil
}

// scopes are what a login asks for. Those that the rules do not name follow from the
// claims that the rules read, as providers leave out a claim whose scope was not asked
// for; and some refuse a login that asks for a scope which they do not have.
func (p *provider) scopes(l *site.Login) []string {
	if len(l.Scopes) > 0 {
		return l.Scopes
	}
	ask := []string{"openid"}
	add := func(scope string, needed, standard bool) {
		if needed && (slices.Contains(p.has, scope) || len(p.has) == 0 && standard) {
			ask = append(ask, scope)
		}
	}
	add("profile", true, true)
	add("email", l.UserClaim == "email", true)
	add(l.GroupsClaim, len(l.Groups) > 0, false)
	add("offline_access", true, true)
	return ask
}

// seldom lets the same be asked for only now and then.
type seldom struct {
	now func() time.Time

	mu    sync.Mutex
	asked map[string]time.Time // by URL: a provider has a few
}

var errSeldom = errors.New("asked a moment ago")

func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := s.now()
	early := now.Sub(s.asked[r.URL.String()]) < askEvery
	if !early {
		s.asked[r.URL.String()] = now
	}
	s.mu.Unlock()
	if early {
		return nil, errSeldom
	}
	return http.DefaultTransport.RoundTrip(r)
}

// person is who has logged in: by the name that they have here, and by what the
// provider calls them for ever; with the nonce of the login, if it was asked for one.
type person struct{ name, subject, nonce string }

// verify says whose an ID token is. All that it says counts only if the provider
// signed it, for this client, and not long ago.
func (p *provider) verify(ctx context.Context, l *site.Login, raw string, now time.Time) (person, error) {
	refused := func(format string, args ...any) (person, error) {
		return person{}, api.Errorf(api.CodeUnauthorized, format, args...).WithHint("log in again: gadm login")
	}
	if len(raw) > maxToken {
		return refused("the provider's token is longer than %d bytes", maxToken)
	}
	t, err := p.Verifier(&oidc.Config{ClientID: l.ClientID, Now: func() time.Time { return now }}).Verify(ctx, raw)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "fetching keys") && !strings.Contains(err.Error(), errSeldom.Error()):
		return person{}, unreachable(p.issuer, err) // nobody can say whether it holds
	default:
		return refused("the provider's token does not hold: %v", err)
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return refused("the provider's token cannot be read: %v", err)
	}
	if azp, ok := claims["azp"]; ok && azp != l.ClientID {
		return refused("the provider's token was given to another client, %v", azp)
	}
	name, err := nameOf(l, claims)
	if err != nil {
		return person{}, api.Errorf(api.CodeDenied, "who you are to %s is nobody here: %v", l.Issuer, err).WithHint("tell your operator: login in gctld.yaml says which users are let in")
	}
	return person{name, t.Subject, t.Nonce}, nil
}

// nameOf is the name here of whom claims are about, if the rules let them in.
func nameOf(l *site.Login, claims map[string]any) (string, error) {
	name, _ := claims[l.UserClaim].(string)
	if name == "" {
		return "", fmt.Errorf("the provider does not say your %s (it may want another of login.scopes for that)", l.UserClaim)
	}
	if l.UserClaim == "email" && claims["email_verified"] != true {
		return "", errors.New("the provider has not verified your address")
	}
	if l.Domain != "" {
		short, ok := strings.CutSuffix(name, "@"+l.Domain)
		if !ok {
			return "", fmt.Errorf("%q is not of %s", name, l.Domain)
		}
		name = short
	}
	if !site.NameRule.MatchString(name) {
		return "", fmt.Errorf("%q is no user name", name)
	}
	if len(l.Groups) == 0 {
		return name, nil
	}
	said, ok := claims[l.GroupsClaim]
	if !ok {
		return "", fmt.Errorf("the provider does not say your %s: you are in none there, or it wants another of login.scopes", l.GroupsClaim)
	}
	list, _ := said.([]any)
	for _, g := range list {
		if text, ok := g.(string); ok && slices.Contains(l.Groups, text) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s is in none of the groups that may log in", name)
}
