package login

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
)

// hostile is a provider that does as it likes, and what strangers are told of it.
func hostile(i *issuer, edit func(*site.Login)) (ask func(context.Context) error, log *bytes.Buffer) {
	l := &site.Login{Issuer: i.srv.URL, ClientID: "gbatch", UserClaim: "preferred_username", TokenLife: 3600}
	if edit != nil {
		edit(l)
	}
	log = &bytes.Buffer{}
	h := New(Options{Conf: func() *site.Config { return &site.Config{Login: l} }, Account: nobody, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
	return func(ctx context.Context) error {
		if _, err := h.Site(ctx, nil); err != nil {
			return err
		}
		key := i.rotate("k1")
		_, err := h.Enter(ctx, &loginInput{Body: api.LoginRequest{IDToken: i.sign(jose.ES256, key, "k1", map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s",
			"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "preferred_username": "root"})}})
		return err
	}, log
}

// TestHostileProvider: what a provider answers, and where it says that its parts are,
// costs the controller little, leads it to no service inside the site, and shows
// strangers nothing of what such a one answers.
func TestHostileProvider(t *testing.T) {
	const secret = "the answer of a service inside"
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		http.Error(w, secret, http.StatusInternalServerError)
	}))
	t.Cleanup(inside.Close)
	endless := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			for line := []byte(strings.Repeat(secret, 1000)); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		names map[string]any
		whole http.HandlerFunc
		rules func(*site.Login)
		want  string
	}{
		"as it should":         {want: "an account of the system"},
		"keys inside":          {names: map[string]any{"jwks_uri": inside.URL}, want: "cannot be asked"},
		"keys inside, allowed": {names: map[string]any{"jwks_uri": inside.URL}, rules: func(l *site.Login) { l.Hosts = []string{strings.TrimPrefix(inside.URL, "http://")} }, want: "cannot be asked"},
		"keys in a file":       {names: map[string]any{"jwks_uri": "file:///etc/shadow"}, want: "names no address of its keys"},
		"no keys":              {names: map[string]any{"jwks_uri": ""}, want: "names no address of its keys"},
		"codes at a program":   {names: map[string]any{"token_endpoint": "javascript:alert(1)"}, want: "names no address for the device flow"},
		"device at a program":  {names: map[string]any{"device_authorization_endpoint": "data:text/html,x"}, want: "names no address for the device flow"},
		"another issuer":       {names: map[string]any{"issuer": "https://evil.example"}, want: "its answer cannot be used"},
		"its redirect":         {whole: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, http.StatusFound) }, want: "its answer cannot be used"},
		"an endless answer":    {whole: endless(http.StatusOK), want: "its answer cannot be used"},
		"an endless error":     {whole: endless(http.StatusTeapot), want: "its answer cannot be used"},
		"no JSON":              {whole: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(secret)) }, want: "its answer cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.names, i.whole = tc.names, tc.whole
			before := reached.Load()
			ask, log := hostile(i, tc.rules)
			err := ask(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%.300v, want %q", err, tc.want)
			}
			if n := reached.Load() - before; (n > 0) != (tc.rules != nil) {
				t.Errorf("the controller asked a service inside %d times", n)
			}
			if tc.want == "cannot be asked" && !strings.Contains(log.String(), "the identity provider cannot be asked") {
				t.Errorf("nothing is said to the operator: %s", log)
			}
		})
	}
}

// TestMixedUp: what the provider signed for a login on the page is no login by a command.
func TestMixedUp(t *testing.T) {
	i := newIssuer(t)
	key := i.rotate("k1")
	h := pageOf(t, i)
	_, err := h.Enter(t.Context(), &loginInput{Body: api.LoginRequest{IDToken: i.sign(jose.ES256, key, "k1", map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "preferred_username": "ann", "nonce": "n"})}})
	if !hasCode(err, string(api.CodeUnauthorized)) || !strings.Contains(err.Error(), "on a web page") {
		t.Errorf("it is answered %v", err)
	}
}

// TestDirectoryAway: who cannot be told from an account of the system does not log in,
// and is told to try again.
func TestDirectoryAway(t *testing.T) {
	i := newIssuer(t)
	key := i.rotate("k1")
	h := pageOf(t, i)
	h.account = func(string) (*uint32, *api.Error) {
		return nil, api.Errorf(api.CodeUnavailable, "the directory is away")
	}
	_, err := h.Enter(t.Context(), &loginInput{Body: api.LoginRequest{IDToken: i.sign(jose.ES256, key, "k1", map[string]any{"iss": i.srv.URL, "aud": "gbatch", "sub": "s",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "preferred_username": "ann"})}})
	if !hasCode(err, string(api.CodeUnavailable)) {
		t.Errorf("it is answered %v", err)
	}
}

// hanging answers nobody.
type hanging struct{ asked atomic.Int32 }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestHangingProvider: of many who come while the provider hangs one asks, the others
// hear what that one heard, and who leaves does not wait on.
func TestHangingProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := &hanging{}
		before := transportOf
		transportOf = func(*site.Login) http.RoundTripper { return hang }
		defer func() { transportOf = before }()
		l := &site.Login{Issuer: "http://127.0.0.1:1", ClientID: "gbatch"}
		h := New(Options{Conf: func() *site.Config { return &site.Config{Login: l} }, Account: nobody, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		began := time.Now()
		ended := make(chan time.Duration, 101)
		leaving, leave := context.WithCancel(t.Context())
		for n := range 101 {
			ctx := t.Context()
			if n == 100 {
				synctest.Wait() // one asks, the others wait
				ctx = leaving
			}
			go func() { // ends when it is answered
				if _, err := h.Site(ctx, nil); err == nil {
					t.Error("a provider that hangs was asked")
				}
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		leave()
		if took := <-ended; took != 0 {
			t.Errorf("who left waited for %v", took)
		}
		for range 100 {
			if took := <-ended; took > askTime {
				t.Errorf("one of many waited for %v", took)
			}
		}
		if n := hang.asked.Load(); n != 1 {
			t.Errorf("the provider was asked %d times", n)
		}
	})
}
