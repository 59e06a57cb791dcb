package ctld

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
)

// TestAsked: a controller that does not lead says who does: at once, or when it is another one than the asker knows of, and not later
// than requests may wait.
func TestAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		later time.Duration // c3 leads from then on instead of c1
		open  int64         // others that wait
		want  string
		took  time.Duration
	}{
		"whoever leads":       {"", time.Hour, 0, "c1", 0},
		"another one":         {"?not=c2", time.Hour, 0, "c1", 0},
		"when another leads":  {"?not=c1", 7 * time.Second, 0, "c3", 7 * time.Second},
		"it goes on to lead":  {"?not=c1", time.Hour, 0, "c1", askedWait},
		"too many wait":       {"?not=c1", time.Hour, maxAsked, "c1", 0},
		"any name, and empty": {"?not=", time.Hour, 0, "c1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := &asked{elected: func(ctx context.Context, not string) string {
					leads := "c1"
					if not != leads {
						return leads
					}
					select {
					case <-time.After(tc.later):
						leads = "c3"
					case <-ctx.Done():
					}
					return leads
				}}
				a.open.Store(tc.open)
				w := httptest.NewRecorder()
				signed("c2", http.HandlerFunc(a.serve)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.PathLeader+tc.query, nil))
				if got := strings.TrimSpace(w.Body.String()); got != `{"name":"`+tc.want+`"}` || w.Header().Get(api.HeaderController) != "c2" {
					t.Errorf("answer %s %v, want %s", got, w.Header(), tc.want)
				}
				if took := time.Since(began); took != tc.took || a.open.Load() != tc.open {
					t.Errorf("it took %v, want %v; %d wait", took, tc.took, a.open.Load())
				}
			})
		})
	}
}
