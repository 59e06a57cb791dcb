package ctld

import (
	"os/user"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/munge"
	"gbatch/internal/munge/mungetest"
)

// TestMunge: a real MUNGE says who calls; each credential is good for one
// request, once.
func TestMunge(t *testing.T) {
	here, elsewhere := mungetest.Start(t), mungetest.Start(t)
	s := newSite(t, func(c *site.Config) { c.Munge = &site.Munge{Socket: here} })
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	me := u.Username
	c := &client.Client{Address: s.remote(), Munge: &client.Munge{Socket: here}}
	defer c.Close()
	st, err := c.Status(t.Context())
	if err != nil || st.You != me || st.Role != "user" { // root of any machine is nobody special
		t.Errorf("by MUNGE the caller is %+v, %v", st, err)
	}
	if _, err := c.Submit(t.Context(), hello(1), ""); err != nil {
		t.Errorf("a request with a body: %v", err)
	}
	stranger := &client.Client{Address: s.remote(), Munge: &client.Munge{Socket: elsewhere}}
	defer stranger.Close()
	if _, err := stranger.Status(t.Context()); !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("a site with another key: %v", err)
	}
	encode := func(payload []byte) string {
		t.Helper()
		credential, err := munge.Encode(t.Context(), here, payload)
		if err != nil {
			t.Fatal(err)
		}
		return credential
	}
	ask := func(method, path, body, credential string) int {
		t.Helper()
		status, _ := column{name: "munge", header: munge.Scheme + credential}.do(t, s, method, path, body)
		return status
	}
	once := encode(munge.Payload("GET", "/v1/status", nil))
	held := encode(munge.Payload("POST", "/v1/actions/hold", []byte(`{"ids":["1"]}`)))
	for name, tc := range map[string]struct {
		method, path, body, credential string
		want                           int
	}{
		"other_path":   {"GET", "/v1/jobs", "", encode(munge.Payload("GET", "/v1/status", nil)), 401},
		"other_query":  {"GET", "/v1/jobs?all=true", "", encode(munge.Payload("GET", "/v1/jobs", nil)), 401},
		"other_method": {"POST", "/v1/status", "", encode(munge.Payload("GET", "/v1/status", nil)), 404},
		"other_body":   {"POST", "/v1/actions/cancel", `{"ids":["1"]}`, held, 401},
		"no_payload":   {"GET", "/v1/status", "", encode(nil), 401},
		"expired":      {"GET", "/v1/status", "", mungetest.Expired(t, here), 401},
		"nonsense":     {"GET", "/v1/status", "", "MUNGE:hello:", 401},
	} {
		if got := ask(tc.method, tc.path, tc.body, tc.credential); got != tc.want {
			t.Errorf("%s: status %d, want %d", name, got, tc.want)
		}
	}
	if a, b := ask("GET", "/v1/status", "", once), ask("GET", "/v1/status", "", once); a != 200 || b != 401 {
		t.Errorf("a credential that is used twice: %d, %d", a, b)
	}
	none := newSite(t, nil)
	if status, _ := (column{name: "munge", header: munge.Scheme + encode(munge.Payload("GET", "/v1/status", nil))}).do(t, none, "GET", "/v1/status", ""); status != 401 {
		t.Errorf("a controller that takes no MUNGE: status %d", status)
	}
}

// TestMungeIsBroken: a daemon that is not there is the site's trouble, and said.
func TestMungeIsBroken(t *testing.T) {
	mungetest.Start(t)
	s := newSite(t, func(c *site.Config) { c.Munge = &site.Munge{Socket: "/no/such/socket"} })
	if status, _ := (column{name: "munge", header: munge.Scheme + "MUNGE:x:"}).do(t, s, "GET", "/v1/status", ""); status != 503 {
		t.Errorf("status %d", status)
	}
}

// TestUnknownScheme: no other scheme is taken for one.
func TestUnknownScheme(t *testing.T) {
	s := newSite(t, nil)
	for _, header := range []string{"Basic cm9vdDpyb290", "bearer x", "Bearer", "Bearer "} {
		if status, _ := (column{name: "odd", header: header}).do(t, s, "GET", "/v1/status", ""); status != 401 {
			t.Errorf("%q: status %d", header, status)
		}
	}
}
