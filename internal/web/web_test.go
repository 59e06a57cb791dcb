package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// TestServe serves a page of our own in place of the one that is built.
func TestServe(t *testing.T) {
	old := files
	defer func() { files = old }()
	page := map[string]*file{"index.html": packed("index.html", []byte("<html>")), "page-ABC.js": packed("page-ABC.js", []byte("let a"))}
	files = func() map[string]*file { return page }
	tests := map[string]struct {
		path, accept string
		body, kind   string
		cache        string
		code         string
	}{
		"document":   {path: "/web/", body: "<html>", kind: "text/html", cache: "no-cache"},
		"a_place":    {path: "/web/jobs/12", body: "<html>", kind: "text/html", cache: "no-cache"},
		"a_name":     {path: "/web/jobs/a.b", body: "<html>", kind: "text/html", cache: "no-cache"},
		"script":     {path: "/web/page-ABC.js", body: "let a", kind: "text/javascript", cache: "public, max-age=31536000, immutable"},
		"compressed": {path: "/web/page-ABC.js", accept: "br, gzip", body: "\x1f\x8b", kind: "text/javascript", cache: "public, max-age=31536000, immutable"},
		"old_script": {path: "/web/page-OLD.js", code: api.CodeNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", tc.path, nil)
			r.Header.Set("Accept-Encoding", tc.accept)
			w := httptest.NewRecorder()
			err := Serve(w, r)
			if tc.code != "" {
				if e, ok := err.(*api.Error); !ok || e.Code != tc.code {
					t.Errorf("got %v, want %s", err, tc.code)
				}
				return
			}
			h := w.Header()
			if err != nil || !strings.HasPrefix(w.Body.String(), tc.body) || !strings.HasPrefix(h.Get("Content-Type"), tc.kind) || h.Get("Cache-Control") != tc.cache {
				t.Errorf("got %q %v %v", w.Body, h, err)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("policy %q", csp)
			}
			again := httptest.NewRecorder()
			r.Header.Set("If-None-Match", h.Get("Etag"))
			if err := Serve(again, r); err != nil || again.Code != 304 || again.Body.Len() > 0 {
				t.Errorf("asked again: %d %q %v", again.Code, again.Body, err)
			}
		})
	}
}

// TestPolicy: a browser loads what is ours alone, and nothing that stands in a document
// or comes of a text is run.
func TestPolicy(t *testing.T) {
	got := map[string]string{}
	for _, d := range strings.Split(policy, ";") {
		name, what, _ := strings.Cut(strings.TrimSpace(d), " ")
		got[name] = what
	}
	want := map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "img-src": "'self'",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

// TestHome sends browsers to the page, and tells programs what there is.
func TestHome(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	if err := Home(httptest.NewRecorder(), r); err == nil {
		t.Error("a program was sent to the page")
	}
	r.Header.Set("Accept", "text/html,*/*")
	w := httptest.NewRecorder()
	if err := Home(w, r); err != nil || w.Header().Get("Location") != Base {
		t.Errorf("a browser: %v, %v", w.Header(), err)
	}
}
