package ctld

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/rules"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// TestTokensThatDoNotHold: each way in which a token is none.
func TestTokensThatDoNotHold(t *testing.T) {
	s, other := newSite(t, nil), newSite(t, nil)
	ann := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"})
	parts := strings.Split(ann.Secret, ".")
	key, err := pki.OpenKey(filepath.Join(s.cfg.Dir, site.TokenKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	audience := func(use string) jwt.Audience { return jwt.Audience{use + "@" + s.pin()} }
	claims := func() jwt.Claims {
		return jwt.Claims{Issuer: "gctld", Audience: audience(api.TokenUser), ID: ann.ID, Subject: "ann",
			IssuedAt: jwt.NewNumericDate(ann.Created), Expiry: jwt.NewNumericDate(ann.Expires)}
	}
	signed := func(key any, alg jose.SignatureAlgorithm, edit func(*jwt.Claims)) string {
		t.Helper()
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := claims()
		edit(&c)
		text, err := jwt.Signed(signer).Claims(c).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	forger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	same := func(*jwt.Claims) {}
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	tests := map[string]struct{ secret, want string }{
		"empty":        {"x", "not one of this controller's"},
		"no_algorithm": {encoded(`{"alg":"none"}`) + "." + parts[1] + ".", "not one of this controller's"},
		"hmac":         {signed(make([]byte, 32), jose.HS256, same), "not one of this controller's"},
		"forged":       {signed(forger, jose.ES256, same), "its signature does not hold"},
		"changed":      {parts[0] + "." + encoded(strings.Replace(decoded(t, parts[1]), `"ann"`, `"root"`, 1)) + "." + parts[2], "its signature does not hold"},
		"other_site":   {other.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret, "its signature does not hold"},
		"audience":     {signed(key, jose.ES256, func(c *jwt.Claims) { c.Audience = audience(api.TokenJoin) }), "meant for something else"},
		"no_audience":  {signed(key, jose.ES256, func(c *jwt.Claims) { c.Audience = nil }), "meant for something else"},
		"other_user":   {signed(key, jose.ES256, func(c *jwt.Claims) { c.Subject = "root" }), "meant for something else"},
		"no_record":    {signed(key, jose.ES256, func(c *jwt.Claims) { c.ID = "none" }), "not known here"},
		"expired":      {signed(key, jose.ES256, func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(time.Now().Add(-time.Hour)) }), "has expired"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &client.Client{Address: s.remote(), Token: tc.secret}
			defer c.Close()
			_, err := c.Status(t.Context())
			if !client.IsCode(err, api.CodeUnauthorized) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it was answered %v; want %q", err, tc.want)
			}
		})
	}
}

func decoded(t *testing.T, part string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRevoking: a revoked token stops at once, over restarts, and what is open
// by it ends.
func TestRevoking(t *testing.T) {
	s := newSite(t, nil)
	tok := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann", Note: "laptop"})
	ann := &client.Client{Address: s.remote(), Token: tok.Secret}
	defer ann.Close()
	r, err := ann.Submit(t.Context(), hello(1), "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ann.Job(t.Context(), "1", client.JobOptions{})
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan time.Time, 1)
	go func() { // ends when the token does
		_, _ = ann.Job(t.Context(), "1", client.JobOptions{Wait: 5 * time.Minute, Version: d.Version})
		polled <- time.Now()
	}()
	if err := s.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	<-polled
	for range 2 {
		_, err := ann.Jobs(t.Context(), client.JobFilter{})
		if !client.IsCode(err, api.CodeUnauthorized) || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("a revoked token: %v", err)
		}
		s.stop()
		s.start()
		ann = &client.Client{Address: s.remote(), Token: tok.Secret}
		defer ann.Close()
	}
	l, err := s.Tokens(t.Context(), true)
	if err != nil || len(l.Tokens) != 1 || l.Tokens[0].Revoked.IsZero() || l.Tokens[0].Secret != "" || l.Tokens[0].Note != "laptop" || l.Tokens[0].By != "root" {
		t.Errorf("the list has %+v, %v", l, err)
	}
	if d := s.job("1"); d.Number != r.Number || d.User != "ann" {
		t.Errorf("the job is %+v", d.Job)
	}
}

// TestWhoMakesTokens: a token makes no tokens, a machine that knows its user
// does; and there are bounds.
func TestWhoMakesTokens(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Admins = byName("boss") })
	tokens := &access.Tokens{Conf: s.server.rules.Now, Keys: s.server.keys, Loop: s.server.loop, Now: time.Now}
	const maxNote, maxTokens = 200, 100
	make := func(id access.Identity, q api.TokenRequest) error {
		_, err := tokens.Create(access.WithCaller(t.Context(), id, ""), &access.TokenInput{Body: q})
		return err
	}
	bySocket := access.Identity{User: "ann", Role: access.RoleUser, Machine: true}
	byToken := access.Identity{User: "ann", Role: access.RoleUser}
	boss := access.Identity{User: "boss", Role: access.RoleAdmin}
	own, join := api.TokenRequest{Use: api.TokenUser}, api.TokenRequest{Use: api.TokenJoin}
	tests := map[string]struct {
		id   access.Identity
		q    api.TokenRequest
		want string // code
	}{
		"own":            {bySocket, own, ""},
		"own_by_token":   {byToken, own, api.CodeDenied},
		"link":           {bySocket, api.TokenRequest{Use: api.TokenLogin}, ""},
		"link_of_admin":  {boss, api.TokenRequest{Use: api.TokenLogin, User: "ann"}, api.CodeBadRequest},
		"link_too_long":  {bySocket, api.TokenRequest{Use: api.TokenLogin, LifeS: 601}, api.CodeBadRequest},
		"of_another":     {bySocket, api.TokenRequest{Use: api.TokenUser, User: "boss"}, api.CodeDenied},
		"to_join":        {bySocket, join, api.CodeDenied},
		"admin":          {boss, api.TokenRequest{Use: api.TokenUser, User: "ann"}, ""},
		"admin_to_join":  {boss, api.TokenRequest{Use: api.TokenJoin, Uses: 10_000, LifeS: 30 * 86400}, ""},
		"too_long":       {boss, api.TokenRequest{Use: api.TokenUser, LifeS: 366*86400 + 1}, api.CodeBadRequest},
		"negative":       {boss, api.TokenRequest{Use: api.TokenUser, LifeS: -1}, api.CodeBadRequest},
		"join_too_long":  {boss, api.TokenRequest{Use: api.TokenJoin, LifeS: 31 * 86400}, api.CodeBadRequest},
		"too_many_uses":  {boss, api.TokenRequest{Use: api.TokenJoin, Uses: 10_001}, api.CodeBadRequest},
		"uses_of_a_node": {boss, api.TokenRequest{Use: api.TokenJoin, Uses: 2, Node: "n1"}, api.CodeBadRequest},
		"no_use":         {boss, api.TokenRequest{}, api.CodeBadRequest},
		"bad_user":       {boss, api.TokenRequest{Use: api.TokenUser, User: "a b\n"}, api.CodeBadRequest},
		"bad_node":       {boss, api.TokenRequest{Use: api.TokenJoin, Node: "../x"}, api.CodeBadRequest},
		"long_note":      {boss, api.TokenRequest{Use: api.TokenUser, Note: strings.Repeat("x", maxNote+1)}, api.CodeBadRequest},
	}
	for name, tc := range tests {
		if err := make(tc.id, tc.q); tc.want == "" && err != nil || tc.want != "" && !client.IsCode(err, tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	eve := access.Identity{User: "eve", Role: access.RoleUser, Machine: true}
	for range maxTokens {
		if err := make(eve, own); err != nil {
			t.Fatal(err)
		}
	}
	if err := make(eve, own); !client.IsCode(err, api.CodeOverLimit) || !strings.Contains(err.Error(), "eve has 100 of at most 100 tokens and sessions in force (limits.perUser.tokens)") {
		t.Errorf("token %d: %v", maxTokens+1, err)
	}
}

// TestTokensOnRecord: to make and revoke tokens does not fill the store.
func TestTokensOnRecord(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Limits.PerUser.Tokens = 2 })
	tokens := &access.Tokens{Conf: s.server.rules.Now, Keys: s.server.keys, Loop: s.server.loop, Now: time.Now}
	ctx := access.WithCaller(t.Context(), access.Identity{User: "eve", Role: access.RoleUser, Machine: true}, "")
	for range 20 {
		made, err := tokens.Create(ctx, &access.TokenInput{Body: api.TokenRequest{Use: api.TokenUser}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tokens.Revoke(ctx, &access.TokenName{ID: made.ID}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tokens.Create(ctx, &access.TokenInput{Body: api.TokenRequest{Use: api.TokenUser}})
	if !client.IsCode(err, api.CodeOverLimit) {
		t.Errorf("token 21: %v", err)
	}
}

// TestTokensAreNowhere: neither store nor keys nor audit log hold a token.
func TestTokensAreNowhere(t *testing.T) {
	s := newSite(t, nil)
	secrets := []string{s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret}
	if _, err := s.user("ann").Submit(t.Context(), hello(1), ""); err != nil {
		t.Fatal(err)
	}
	s.stop()
	err := filepath.WalkDir(s.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, ierr := e.Info()
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if signature := secret[strings.LastIndex(secret, ".")+1:]; strings.Contains(string(data), signature) {
				t.Errorf("a token is in %s", path)
			}
		}
		if strings.Contains(string(data), "PRIVATE KEY") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return errors.Join(err, ierr)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOtherControllers: an address that pins another controller, and plain HTTP.
func TestOtherControllers(t *testing.T) {
	s, other := newSite(t, nil), newSite(t, nil)
	address, _, _ := strings.Cut(s.remote(), "#")
	c := &client.Client{Address: address + "#" + other.pin(), Token: "secret"}
	defer c.Close()
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "another controller") {
		t.Errorf("another controller's pin: %v", err)
	}
	site, err := s.Site(t.Context())
	if err != nil || site.Address != s.remote() {
		t.Errorf("the join string is %+v, %v; want %s", site, err, s.remote())
	}
	before := s.pin()
	s.stop()
	s.start()
	if s.pin() != before {
		t.Error("the pin is another one after a restart")
	}
}

// TestClientGoesMeanwhile: what is stored is in force, also when whoever asked
// for it has gone before the answer.
func TestClientGoesMeanwhile(t *testing.T) {
	s := newSite(t, nil)
	tok := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"})
	ctx, cancel := context.WithCancel(access.WithCaller(t.Context(), access.Identity{User: "boss", Role: access.RoleAdmin}, ""))
	cancel()
	tokens := &access.Tokens{Keys: s.server.keys, Loop: s.server.loop, Now: time.Now}
	if err := tokens.Revoke(ctx, &access.TokenName{ID: tok.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.server.rules.PutProject(ctx, &rules.ProjectInput{Name: "lab", Create: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := &client.Client{Address: s.remote(), Token: tok.Secret}
		if _, err := c.Status(t.Context()); !client.IsCode(err, api.CodeUnauthorized) {
			t.Errorf("the token is in force: %v", err)
		}
		c.Close()
		if _, ok := s.server.rules.Now().Project("lab"); !ok {
			t.Error("the project is not there")
		}
		s.stop()
		s.start()
	}
}
