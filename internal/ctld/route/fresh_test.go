package route

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/conns"
)

// TestFresh: what a controller tells that may not lead any more it tells only when that was asked, be it an answer or a refusal;
// where a turn of the loop has asked, it is not asked again.
func TestFresh(t *testing.T) {
	read := func(context.Context, *struct{}) (*struct{}, error) { return &struct{}{}, nil }
	stale, asked := (*api.Error)(nil), 0
	submit := func(_ context.Context, in *struct {
		Bad  bool `query:"bad"`
		Late bool `query:"late"`
		Body struct{}
	}) error {
		switch {
		case in.Bad:
			return api.Errorf(api.CodeNotFound, "there is no such project")
		case in.Late:
			return api.Errorf(api.CodeUnavailable, "whether this was done is not known")
		}
		return nil
	}
	g := New(Config{
		Identify: func(_ http.ResponseWriter, r *http.Request) (access.Identity, *api.Error) {
			if r.Header.Get("X-User") == "" {
				return access.Identity{}, api.Errorf(api.CodeUnauthorized, "this token is not known")
			}
			return access.Identity{User: "ann", Role: access.RoleUser}, nil
		},
		Refused: func(api.AuditEntry, string) {},
		Measure: func(_ string, next http.HandlerFunc) http.HandlerFunc { return next },
		Conns:   conns.New(conns.Config{}),
		Caps:    func(string) Caps { return Caps{} },
		Large:   func() int64 { return 1 },
		Fresh:   func(context.Context) *api.Error { asked++; return stale },
		Log:     slog.New(slog.DiscardHandler),
	}, []Route{
		JSON("GET "+api.PathJobs, access.ByUsers, read).Large(), JSON("GET "+api.PathStatus, access.ByUsers, read), JSON("GET "+api.PathAudit, access.ByOperators, read),
		Done("POST "+api.PathJobs, access.ByUsers, submit).InTurn(), Plain("GET /healthz", access.ByAnyone, "", func(w http.ResponseWriter, _ *http.Request) error { return nil }),
	})
	for _, tc := range []struct {
		request, user string
		want          int // while it leads
		asks          bool
	}{
		{"GET " + api.PathJobs, "ann", 200, true},
		{"GET " + api.PathStatus, "ann", 200, true},
		{"GET " + api.PathStatus, "", 401, true}, // the token may be new
		{"GET " + api.PathAudit, "ann", 403, true},
		{"GET /healthz", "", 200, false},
		{"POST " + api.PathJobs, "ann", 204, false},
		{"POST " + api.PathJobs + "?bad=true", "ann", 404, true}, // the project may be new
		{"POST " + api.PathJobs + "?late=true", "ann", 503, false},
	} {
		for _, stale = range []*api.Error{nil, api.Errorf(api.CodeElsewhere, "another one leads")} {
			asked = 0
			method, path, _ := strings.Cut(tc.request, " ")
			r := httptest.NewRequest(method, path, nil)
			if method == http.MethodPost {
				r = httptest.NewRequest(method, path, strings.NewReader("{}"))
				r.Header.Set("Content-Type", "application/json")
			}
			r.Header.Set("X-User", tc.user)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			want := tc.want
			if stale != nil && tc.asks {
				want = stale.Status
			}
			if w.Code != want || (asked == 1) != tc.asks || asked > 1 {
				t.Errorf("%s of %q, stale: %t: answered %d after %d questions, want %d; asks: %t\n%s", tc.request, tc.user, stale != nil, w.Code, asked, want, tc.asks, w.Body)
			}
		}
	}
	if n := len(g.callers.open); n != 0 {
		t.Errorf("%d users have requests open", n)
	}
}

// TestBrokenOff: what comes to a controller that ends is refused. An answer without a word would look as if it was done.
func TestBrokenOff(t *testing.T) {
	done := false
	g := New(Config{
		Identify: func(http.ResponseWriter, *http.Request) (access.Identity, *api.Error) {
			return access.Identity{User: "ann", Role: access.RoleUser}, nil
		},
		Refused: func(api.AuditEntry, string) {},
		Measure: func(_ string, next http.HandlerFunc) http.HandlerFunc { return next },
		Conns:   conns.New(conns.Config{}),
		Caps:    func(string) Caps { return Caps{} },
		Large:   func() int64 { return 1 },
		Log:     slog.New(slog.DiscardHandler),
	}, []Route{
		Done("POST "+api.PathJobs, access.ByUsers, func(context.Context, *struct{ Body struct{} }) error { done = true; return nil }).InTurn(),
	})
	ctx, end := context.WithCancel(t.Context())
	end()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, api.PathJobs, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || done {
		t.Errorf("answered %d %q, done %v, want 503 and not done", w.Code, w.Body, done)
	}
}
