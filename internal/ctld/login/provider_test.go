package login

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
)

// issuer is an identity provider.
type issuer struct {
	t   *testing.T
	srv *httptest.Server

	mu    sync.Mutex
	keys  jose.JSONWebKeySet
	asked int  // for keys
	away  bool // it answers no more

	status int // of its answers for codes, if not 200
	said   string
	got    url.Values // what it was asked with for the last one

	names map[string]any // of its parts, in place of its own
	whole http.HandlerFunc
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t}
	i.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.whole != nil {
			i.whole(w, r)
			return
		}
		if i.away {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			parts := map[string]any{"issuer": i.srv.URL, "jwks_uri": i.srv.URL + "/keys", "authorization_endpoint": i.srv.URL + "/auth", "token_endpoint": i.srv.URL + "/token",
				"device_authorization_endpoint": i.srv.URL + "/device", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}}
			maps.Copy(parts, i.names)
			_ = json.NewEncoder(w).Encode(parts)
		case "/token":
			_ = r.ParseForm()
			i.got = r.PostForm
			w.Header().Set("Location", i.srv.URL+"/token")
			w.WriteHeader(cmp.Or(i.status, http.StatusOK))
			_, _ = w.Write([]byte(i.said))
		case "/keys":
			i.asked++
			_ = json.NewEncoder(w).Encode(i.keys)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(i.srv.Close)
	return i
}

// rotate has a new key, and no other.
func (i *issuer) rotate(id string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"}}}
	return key
}

// answer is what it says to those who bring a code.
func (i *issuer) answer(status int, said string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status, i.said = status, said
}

func (i *issuer) form() url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.got
}

func (i *issuer) set(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = away
}

func (i *issuer) times() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func (i *issuer) sign(alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// away tells all.
func away(issuer string, err error) error {
	return api.Errorf(api.CodeUnavailable, "%s: %v", issuer, err)
}

// TestVerify: whom a token lets in, and each way in which it lets nobody in. A provider
// that cannot be asked is never a refusal, and no other name.
func TestVerify(t *testing.T) {
	now := time.Now()
	i := newIssuer(t)
	key := i.rotate("k1")
	p, err := newProvider(t.Context(), &site.Login{Issuer: i.srv.URL}, func() time.Time { return now }, away)
	if err != nil {
		t.Fatal(err)
	}
	public, err := json.Marshal(i.keys)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(edit func(map[string]any)) map[string]any {
		c := map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s-1", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "preferred_username": "ann", "email": "ann@example.org", "groups": []string{"staff", "hpc"}}
		edit(c)
		return c
	}
	token := func(edit func(map[string]any)) string { return i.sign(jose.ES256, key, "k1", claims(edit)) }
	good := token(func(map[string]any) {})
	parts := strings.Split(good, ".")
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	other := newIssuer(t).rotate("k1")
	for name, tc := range map[string]struct {
		raw  string
		edit func(*site.Login)
		want string // the name, or of the refusal
	}{
		"good":            {good, nil, "ann"},
		"group":           {good, func(l *site.Login) { l.Groups = []string{"hpc", "x"} }, "ann"},
		"unsaid groups":   {token(func(c map[string]any) { delete(c, "groups") }), func(l *site.Login) { l.Groups = []string{"hpc"} }, "does not say your groups"},
		"no group":        {good, func(l *site.Login) { l.Groups = []string{"h"} }, "none of the groups"},
		"groups as text":  {token(func(c map[string]any) { c["groups"] = "hpc" }), func(l *site.Login) { l.Groups = []string{"hpc"} }, "none of the groups"},
		"domain":          {token(func(c map[string]any) { c["preferred_username"] = "eve@example.org" }), func(l *site.Login) { l.Domain = "example.org" }, "eve"},
		"other domain":    {token(func(c map[string]any) { c["preferred_username"] = "ann@evil.org" }), func(l *site.Login) { l.Domain = "example.org" }, "not of example.org"},
		"no domain":       {good, func(l *site.Login) { l.Domain = "example.org" }, "not of example.org"},
		"address":         {good, func(l *site.Login) { l.UserClaim = "email"; l.Domain = "example.org" }, "not verified your address"},
		"no name":         {token(func(c map[string]any) { delete(c, "preferred_username") }), nil, "does not say your"},
		"list of names":   {token(func(c map[string]any) { c["preferred_username"] = []string{"ann"} }), nil, "does not say your"},
		"odd name":        {token(func(c map[string]any) { c["preferred_username"] = "../ann" }), nil, "no user name"},
		"audience":        {token(func(c map[string]any) { c["aud"] = "wiki" }), nil, "does not hold"},
		"other client":    {token(func(c map[string]any) { c["aud"] = []string{"gbatch", "wiki"}; c["azp"] = "wiki" }), nil, "another client"},
		"issuer":          {token(func(c map[string]any) { c["iss"] = "https://evil.example" }), nil, "does not hold"},
		"expired":         {token(func(c map[string]any) { c["exp"] = now.Add(-time.Minute).Unix() }), nil, "does not hold"},
		"not yet":         {token(func(c map[string]any) { c["nbf"] = now.Add(time.Hour).Unix() }), nil, "does not hold"},
		"no end":          {token(func(c map[string]any) { delete(c, "exp") }), nil, "does not hold"},
		"no algorithm":    {encoded(`{"alg":"none"}`) + "." + parts[1] + ".", nil, "does not hold"},
		"hmac of the key": {i.sign(jose.HS256, public, "k1", claims(func(map[string]any) {})), nil, "does not hold"},
		"forged":          {i.sign(jose.ES256, other, "k1", claims(func(map[string]any) {})), nil, "does not hold"},
		"changed":         {parts[0] + "." + encoded(strings.Replace(decode(t, parts[1]), `"ann"`, `"bob"`, 1)) + "." + parts[2], nil, "does not hold"},
		"kept for a day":  {token(func(c map[string]any) { c["iat"], c["exp"] = now.Add(-time.Hour).Unix(), now.Add(24*time.Hour).Unix() }), nil, "logs in within 10m0s of that"},
		"made tomorrow":   {token(func(c map[string]any) { c["iat"], c["exp"] = now.Add(time.Hour).Unix(), now.Add(24*time.Hour).Unix() }), nil, "logs in within 10m0s of that"},
		"no age":          {token(func(c map[string]any) { delete(c, "iat") }), nil, "logs in within 10m0s of that"},
		"of nobody":       {token(func(c map[string]any) { delete(c, "sub") }), nil, "of whom it is"},
		"unsaid proof":    {token(func(c map[string]any) { c["email"], c["email_verified"] = "bob@example.org", "true" }), func(l *site.Login) { l.UserClaim = "email"; l.Domain = "example.org" }, "not verified your address"},
		"two addresses":   {token(func(c map[string]any) { c["preferred_username"] = "ann@example.org@evil.org" }), func(l *site.Login) { l.Domain = "evil.org" }, "no user name"},
		"a key inside":    {encoded(`{"alg":"ES256","jwk":{"kty":"EC"},"jku":"http://127.0.0.1/"}`) + "." + parts[1] + "." + parts[2], nil, "does not hold"},
		"long":            {good + strings.Repeat("x", maxToken), nil, "longer than"},
		"nothing":         {"", nil, "does not hold"},
	} {
		t.Run(name, func(t *testing.T) {
			now = now.Add(time.Second) // some have keys fetched again
			l := &site.Login{Issuer: i.srv.URL, ClientID: "gbatch", UserClaim: "preferred_username", GroupsClaim: "groups"}
			if tc.edit != nil {
				tc.edit(l)
			}
			who, err := p.verify(t.Context(), l, tc.raw, now)
			if err == nil && (who.name != tc.want || who.subject != "s-1") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it is %+v, %v; want %q", who, err, tc.want)
			}
		})
	}
}

// TestScopes: a login asks for what the claims of the rules need, and for nothing that
// the provider says it does not have.
func TestScopes(t *testing.T) {
	for name, tc := range map[string]struct {
		rules site.Login
		has   []string
		want  string
	}{
		"names":             {site.Login{UserClaim: "preferred_username"}, []string{"openid", "profile", "email", "groups", "offline_access"}, "openid profile offline_access"},
		"addresses, groups": {site.Login{UserClaim: "email", Groups: []string{"hpc"}}, []string{"openid", "profile", "email", "groups", "offline_access"}, "openid profile email groups offline_access"},
		"no such scopes":    {site.Login{UserClaim: "email", Groups: []string{"hpc"}}, []string{"openid", "email"}, "openid email"},
		"it does not say":   {site.Login{UserClaim: "email", Groups: []string{"hpc"}}, nil, "openid profile email offline_access"},
		"as the rules say":  {site.Login{UserClaim: "email", Scopes: []string{"openid", "x"}}, []string{"openid"}, "openid x"},
	} {
		tc.rules.GroupsClaim = "groups"
		if got := strings.Join((&provider{has: tc.has}).scopes(&tc.rules), " "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestKeys: keys are kept while the provider is away, fetched again for a new one, and
// that seldom, whatever strangers send.
func TestKeys(t *testing.T) {
	now := time.Now()
	i := newIssuer(t)
	p, err := newProvider(t.Context(), &site.Login{Issuer: i.srv.URL}, func() time.Time { return now }, away)
	if err != nil {
		t.Fatal(err)
	}
	l := &site.Login{Issuer: i.srv.URL, ClientID: "gbatch", UserClaim: "preferred_username"}
	enter := func(key *ecdsa.PrivateKey, id string) error {
		_, err := p.verify(t.Context(), l, i.sign(jose.ES256, key, id, map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "preferred_username": "ann"}), now)
		return err
	}
	first := i.rotate("k1")
	if err := enter(first, "k1"); err != nil {
		t.Fatal(err)
	}
	i.set(true)
	if err := enter(first, "k1"); err != nil {
		t.Errorf("while the provider is away its keys are forgotten: %v", err)
	}
	// go-oidc answers with the outcome of a fetch until its goroutine has put that away.
	eventually := func(what string, key *ecdsa.PrivateKey, ok func(error) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; {
			now = now.Add(askEvery)
			err := enter(key, "k2")
			if ok(err) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	second := i.rotate("k2")
	eventually("a key that cannot be asked for does not say that the provider is away", second, func(err error) bool { return hasCode(err, api.CodeUnavailable) })
	i.set(false)
	eventually("a new key", second, func(err error) bool { return err == nil })
	before := i.times()
	for range 100 {
		if err := enter(first, "k9"); !hasCode(err, api.CodeUnauthorized) {
			t.Fatalf("a key that is none: %v", err)
		}
	}
	if n := i.times() - before; n > 1 {
		t.Errorf("tokens of strangers had the keys fetched %d times", n)
	}
	now = now.Add(askEvery)
	if err := enter(first, "k1"); !hasCode(err, api.CodeUnauthorized) {
		t.Errorf("the key that was taken back: %v", err)
	}
}

func hasCode(err error, code string) bool {
	e, ok := err.(*api.Error) //nolint:errorlint // as it is answered
	return ok && string(e.Code) == code
}

func decode(t *testing.T, part string) string {
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
