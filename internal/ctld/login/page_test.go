package login

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
)

// nobody is a machine without accounts.
func nobody(string) (*uint32, *api.Error) { return nil, nil }

// pageOf has the page log in at a provider.
func pageOf(t *testing.T, i *issuer) *Handlers {
	l := &site.Login{Issuer: i.srv.URL, ClientID: "gbatch", UserClaim: "preferred_username", Pages: []string{"https://other.example/web/", "https://head.example/web/"}, TokenLife: 3600}
	h := New(Options{Conf: func() *site.Config { return &site.Config{Login: l} }, Account: nobody, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	return h
}

// TestPageLogin: what a login shows the provider, and each way in which a browser
// that comes back gets no session: by itself, or by what the provider answers.
func TestPageLogin(t *testing.T) {
	i := newIssuer(t)
	key := i.rotate("k1")
	h := pageOf(t, i)
	const origin = "https://head.example"
	kept, begun, err := h.Begin(t.Context(), &beginInput{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(begun.Address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("redirect_uri") != origin+"/web/" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("scope") != "openid profile" || strings.Contains(begun.Address, kept.Value) {
		t.Errorf("the browser is sent to %s", begun.Address)
	}
	if !kept.HttpOnly || !kept.Secure || kept.SameSite != http.SameSiteStrictMode || kept.Path != "/" || kept.MaxAge <= 0 {
		t.Errorf("the cookie is %v", kept)
	}
	for _, from := range []string{"", "https://evil.example", "https://head.example:8443", "http://head.example"} {
		if _, _, err := h.Begin(t.Context(), &beginInput{Origin: from}); !hasCode(err, string(api.CodeDenied)) {
			t.Errorf("a login that is begun from %q: %v", from, err)
		}
	}
	token := func(user, nonce string) string {
		return `{"access_token":"a","token_type":"Bearer","id_token":"` + i.sign(jose.ES256, key, "k1", map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s-1",
			"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "preferred_username": user, "nonce": nonce}) + `"}`
	}
	good := returnInput{Origin: origin, Secret: kept.Value, Body: api.LoginReturn{Code: "c", State: q.Get("state")}}
	for name, tc := range map[string]struct {
		edit   func(*returnInput)
		status int
		answer string
		want   string
	}{
		"another browser": {edit: func(in *returnInput) { in.Secret = "another" }, want: "begun in another browser"},
		"no cookie":       {edit: func(in *returnInput) { in.Secret = "" }, want: "begun in another browser"},
		"no state":        {edit: func(in *returnInput) { in.Body.State = "" }, want: "begun in another browser"},
		"another page":    {edit: func(in *returnInput) { in.Origin = "https://evil.example" }, want: "and not from"},
		"a used code":     {status: 400, answer: `{"error":"invalid_grant","error_description":"<b>x</b>"}`, want: "does not take the code"},
		"another refusal": {status: 400, answer: `{"error":"` + strings.Repeat("x", 5000) + `"}`, want: `answers 400 Bad Request "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`},
		"an error":        {status: 500, answer: "<html>", want: `answers 500 Internal Server Error ""`},
		"a redirect":      {status: 307, answer: "", want: "answers 307"},
		"no JSON":         {answer: "<html>", want: "cannot be asked"},
		"no ID token":     {answer: `{"access_token":"a","token_type":"Bearer"}`, want: "sent no ID token"},
		"an odd ID token": {answer: `{"access_token":"a","token_type":"Bearer","id_token":["x"]}`, want: "sent no ID token"},
		"forged":          {answer: `{"access_token":"a","token_type":"Bearer","id_token":"x.y.z"}`, want: "does not hold"},
		"another login":   {answer: token("ann", "x"), want: "is of another login"},
		"no nonce":        {answer: token("ann", ""), want: "is of another login"},
		"a number's name": {answer: token("uid1003", part(kept.Value, "nonce")), want: "a number without a name"},
		"another state":   {edit: func(in *returnInput) { in.Body.State = part("another", "state") }, want: "begun in another browser"},
		"endless":         {answer: `{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`, want: "cannot be asked"},
		"a system's user": {answer: token("root", part(kept.Value, "nonce")), want: "is an account of the system"},
	} {
		t.Run(name, func(t *testing.T) {
			i.answer(tc.status, tc.answer)
			in := good
			if tc.edit != nil {
				tc.edit(&in)
			}
			if _, err := h.Return(t.Context(), &in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if got := i.form(); got.Get("code_verifier") != part(kept.Value, "verifier") || got.Get("code") != "c" || got.Get("client_id") != "gbatch" || got.Get("redirect_uri") != origin+"/web/" {
		t.Errorf("the provider was asked with %v", got)
	}
}

// TestUnfitAddress: a provider cannot send browsers to what they would run, nor have
// codes sent in the clear.
func TestUnfitAddress(t *testing.T) {
	safe, loopback := &site.Login{Issuer: "https://id.example"}, &site.Login{Issuer: "http://127.0.0.1:1"}
	for address, want := range map[string][2]bool{
		"https://id.example/auth":   {true, true},
		"http://id.example/auth":    {false, true},
		"javascript:alert(1)":       {},
		"javascript://x/%0aalert()": {},
		"data:text/html,x":          {},
		"/auth":                     {},
		"":                          {},
	} {
		if got := [2]bool{reachable(safe, address), reachable(loopback, address)}; got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}
