package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	hosts  []string                             // as the rules had them
	has    []string                             // the scopes that it says it has; empty: it says nothing of them
	away   func(issuer string, err error) error // what strangers are told when it cannot be asked
}

const (
	askTime = 10 * time.Second // for an answer of the provider
	// askEvery is how often keys are fetched at most: a token that names a key which is
	// not known has them fetched again, and strangers can make such tokens.
	askEvery = 10 * time.Second
	maxToken = 16 << 10 // bytes of an ID token
	// freshTime is how old an ID token may be, or how much ahead its clock: who has
	// kept one could log in by it for as long as it lives, which some providers let be days.
	freshTime = 10 * time.Minute
)

func newProvider(ctx context.Context, l *site.Login, now func() time.Time, away func(issuer string, err error) error) (*provider, error) {
	client := newClient(l, &seldom{now: now, asked: map[string]time.Time{}})
	// What is kept outlives the request that asked for it first.
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), l.Issuer)
	if err != nil {
		return nil, err
	}
	var said struct {
		Scopes []string `json:"scopes_supported"`
		Keys   string   `json:"jwks_uri"`
	}
	if err := p.Claims(&said); err != nil {
		return nil, err
	}
	if !reachable(l, said.Keys) {
		return nil, plain("it names no address of its keys that can be used: want https://…")
	}
	return &provider{p, l.Issuer, slices.Clone(l.Hosts), said.Scopes, away}, nil
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
	case strings.Contains(err.Error(), "fetching keys") && !tooSeldom(err):
		return person{}, p.away(p.issuer, err) // nobody can say whether it holds
	default:
		return refused("the provider's token does not hold: %v", err)
	}
	if age := now.Sub(t.IssuedAt); age > freshTime || age < -freshTime {
		return refused("the provider's token was made at %s, and logs in within %v of that", t.IssuedAt.UTC().Format(time.RFC3339), freshTime)
	}
	if t.Subject == "" {
		return refused("the provider's token does not say of whom it is: it has no sub")
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
