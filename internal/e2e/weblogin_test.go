package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gbatch/internal/hosttest"
)

// identities is an identity provider with one user, who logs in by a click.
type identities struct {
	t   *testing.T
	srv *httptest.Server
	key *ecdsa.PrivateKey

	mu    sync.Mutex
	codes map[string]url.Values // what each was asked for with
	sent  []url.Values          // of all that browsers were sent there with
}

func newIdentities(t *testing.T) *identities {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &identities{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.tell(w, map[string]any{"issuer": p.srv.URL, "jwks_uri": p.srv.URL + "/keys", "authorization_endpoint": p.srv.URL + "/auth", "token_endpoint": p.srv.URL + "/token", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.tell(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/auth", p.ask)
	mux.HandleFunc("/token", p.exchange)
	p.srv = httptest.NewServer(mux)
	t.Cleanup(p.srv.Close)
	return p
}

func (p *identities) tell(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

// asked is what browsers were sent there with, in turn.
func (p *identities) asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// ask shows the browser two links back: with a code, and with a refusal.
func (p *identities) ask(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.sent = append(p.sent, q)
	p.mu.Unlock()
	back := func(v url.Values) string {
		v.Set("state", q.Get("state"))
		return q.Get("redirect_uri") + "?" + strings.ReplaceAll(v.Encode(), "&", "&amp;")
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, `<!doctype html><title>who are you</title><a id="in" href="%s">I am ann</a> <a id="out" href="%s">I am nobody</a>`,
		back(url.Values{"code": {code}}), back(url.Values{"error": {"access_denied"}, "error_description": {"<img src=x onerror=alert(1)>"}}))
}

func (p *identities) exchange(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	p.mu.Lock()
	asked := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		p.tell(w, map[string]any{"error": "invalid_grant"})
		return
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil)
	if err != nil {
		p.t.Error(err)
		return
	}
	id, err := jwt.Signed(signer).Claims(map[string]any{"iss": p.srv.URL, "aud": asked.Get("client_id"), "sub": "s-1", "nonce": asked.Get("nonce"),
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "preferred_username": "ann"}).Serialize()
	if err != nil {
		p.t.Error(err)
		return
	}
	p.tell(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": id})
}

// TestWebLogin logs in on the page at the site's identity provider: back where the
// user wanted to be, by a session that no script reads; who is refused there, brings
// an old code or comes with another's link back is nobody.
func TestWebLogin(t *testing.T) {
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := newIdentities(t)
	page := "https://" + address + "/web/"
	s := newSite(t, siteOptions{ctldConfig: quick + fmt.Sprintf("login: {issuer: %s, clientId: gbatch, pages: [%q]}\n", p.srv.URL, page), listen: address})
	b := newBrowser(t)
	button := "Log in at " + strings.TrimPrefix(p.srv.URL, "http://")

	b.open(page + "cluster?text=n")
	b.press(button)
	b.follow("out", "access_denied")
	if got := b.text("document.querySelectorAll('.login img').length + location.search"); got != "0?text=n" {
		t.Errorf("what the provider sent is in the page, or in the address: %q", got)
	}
	b.accessible("the login, with a provider")
	b.open(page + "cluster?text=n")
	b.press(button)
	b.follow("in", "Log out")
	b.until("it is where the login began", "location.pathname + location.search === '/web/cluster?text=n'")
	if got := b.text("document.querySelector('header').innerText.includes('ann') + document.cookie + location.hash + JSON.stringify([{...sessionStorage}, {...localStorage}])"); got != "true[{},{}]" {
		t.Errorf("who is logged in, and what scripts can read: %s", got)
	}
	if l := s.must("gadm", "token", "list", "--all", "--json"); !strings.Contains(l, `"subject": "s-1"`) || strings.Count(l, `"id"`) != 1 {
		t.Errorf("the sessions are %s", l)
	}

	b.press("Submit")
	b.fill("textarea", `{"name": "typed"}`)
	b.text("fetch('/v1/session', { method: 'DELETE' }), ''")
	b.press("Check")
	b.shows("nothing that you typed is lost")
	before := len(p.asked())
	b.press(button)
	b.shows("Log in in the other tab")
	eventually(t, "the other tab is at the provider", func() bool { return len(p.asked()) > before })
	last := p.asked()[before]
	back := page + "?" + url.Values{"code": {"stolen"}, "state": {last.Get("state")}}.Encode()
	for name, at := range map[string]string{"a code that is none": back, "another's link back": page + "?code=x&state=y"} {
		tab := b.tab(at)
		tab.until(name+" is refused", "/does not take the code|begun in another browser/.test(document.body.innerText)")
	}
	tab := b.tab(p.srv.URL + "/auth?" + last.Encode())
	tab.do("log in there", chromedp.Click("#in", chromedp.NodeVisible))
	b.until("the first tab goes on", "!document.querySelector('.login')")
	if got := b.text("document.querySelector('textarea').value"); !strings.Contains(got, "typed") {
		t.Errorf("what was typed is lost: %q", got)
	}
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// TestWebLoginProviders logs in on the page at real identity providers, by their own pages.
func TestWebLoginProviders(t *testing.T) {
	for name, p := range realProviders {
		t.Run(name, func(t *testing.T) {
			address, err := hosttest.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			page := "https://" + address + "/web/"
			_, issuer := p.start(t, page)
			s := newSite(t, siteOptions{ctldConfig: quick + fmt.Sprintf("login: {issuer: %s, clientId: gbatch, pages: [%q], %s}\n", issuer, page, p.rules), listen: address})
			b := newBrowser(t)
			at, err := url.Parse(issuer)
			if err != nil {
				t.Fatal(err)
			}
			begin := func() {
				b.open(page + "cluster")
				b.press("Log in at " + at.Host)
			}
			begin()
			eventually(t, "the provider sends the browser back", func() bool {
				if b.text("location.protocol") == "chrome-error:" { // an interface has come, and the load was broken off
					begin()
				}
				return b.text(fmt.Sprintf(`(() => {
					if (location.href.startsWith(%q)) return document.body.innerText.includes('Log out')
					const form = document.querySelector('form')
					if (document.readyState !== 'complete' || !form || form.sent) return false
					for (const e of form.querySelectorAll('input[name=login], input[name=password]')) e.value = %q
					form.sent = true
					form.querySelector('button, [type=submit]').click()
					return false
				})()`, page, p.user)) == "true"
			})
			if got := b.text("document.querySelector('header').innerText.includes('" + p.user + "') + location.pathname + location.search"); got != "true/web/cluster" {
				t.Errorf("who is logged in, and where: %s", got)
			}
			if l := s.must("gadm", "token", "list", "--all", "--json"); !strings.Contains(l, `"user": "`+p.user+`"`) || !strings.Contains(l, `"use": "web"`) {
				t.Errorf("the sessions are %s", l)
			}
			b.press("Log out")
			b.shows("You are logged out.")
			if list := b.complaints(); len(list) > 0 {
				t.Errorf("the page complained: %q", list)
			}
		})
	}
}

// follow goes on at the provider, until the page is back and shows a text.
func (b *browser) follow(link, text string) {
	b.t.Helper()
	b.do("log in there", chromedp.Click("#"+link, chromedp.NodeVisible))
	b.comes(text)
}

// comes waits until a page has a text, while the browser goes from one to another:
// what is asked of the one that it leaves may have no answer.
func (b *browser) comes(text string) {
	b.t.Helper()
	eventually(b.t, "the page shows "+text, func() bool { return b.text("document.body?.innerText.includes("+quoted(text)+")") == "true" })
}

// tab is another tab of the same browser.
func (b *browser) tab(url string) *browser {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	tab := &browser{t: b.t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		b.t.Fatalf("open a tab: %v", err)
	}
	return tab
}
