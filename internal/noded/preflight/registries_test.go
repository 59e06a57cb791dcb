package preflight

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gbatch/internal/noded/config"
)

func TestCheckRegistries(t *testing.T) {
	serve := func(path string, code int) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				code = http.StatusNotFound
			}
			w.WriteHeader(code)
		}))
		t.Cleanup(srv.Close)
		return strings.TrimPrefix(srv.URL, "http://")
	}
	for name, tc := range map[string]struct {
		host, what string
		well       bool
	}{
		"open":  {serve("/v2/", 200), "registry 127", true},
		"login": {serve("/v2/", 401), "registry 127", true},
		"other": {serve("/", 200), "is none: it answers 404", false},
		"down":  {"127.0.0.1:9", "connection refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkRegistries(t.Context(), &config.Config{Images: config.Images{Insecure: []string{tc.host}, Mirrors: map[string][]string{"docker.io": {tc.host}}}})
			if len(got) != 1 || !strings.Contains(got[0].what, tc.what) || (got[0].fix == "") != tc.well || got[0].fatal {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := checkRegistries(t.Context(), &config.Config{}); len(got) > 0 {
		t.Errorf("nothing is configured: %+v", got)
	}
}
