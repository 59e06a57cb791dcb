package route

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/places"
)

// TestTenfoldLists: the 99th percentile of what others wait for a list, on one processor
// that works a while on each, at most doubles when one user asks for ten times as many.
// Were all of them one user it would more than double. The time is the test's own.
func TestTenfoldLists(t *testing.T) {
	alike := map[string]int{"ann": 2, "bob": 2, "eve": 2, "kim": 2}
	tenfold := map[string]int{"ann": 20, "bob": 2, "eve": 2, "kim": 2}
	own := func(user string) string { return user }
	before, after := listWait(t, alike, own), listWait(t, tenfold, own)
	t.Logf("a list takes %v, and %v beside ten times as many", before, after)
	if after > 2*before {
		t.Errorf("a list takes %v, and %v beside a user who asks for ten times as many", before, after)
	}
	all := func(string) string { return "all" }
	if before, after := listWait(t, alike, all), listWait(t, tenfold, all); after <= 2*before {
		t.Errorf("without turns of users a list takes %v and %v: this test would not see it", before, after)
	}
}

// listWait is the 99th percentile of how long all but ann wait for lists, if each user has
// so many programs that ask for one after the other.
func listWait(t *testing.T, programs map[string]int, known func(user string) string) (p99 time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		processor := make(chan struct{}, 1)
		work := func(context.Context, *struct{}) (*struct{}, error) {
			processor <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-processor
			return &struct{}{}, nil
		}
		submit := func(context.Context, *struct{ Body struct{} }) error { return nil } // what describes the API wants one
		g := New(Config{
			Identify: func(_ http.ResponseWriter, r *http.Request) (access.Identity, *api.Error) {
				return access.Identity{User: known(r.Header.Get("X-User")), Role: access.RoleUser}, nil
			},
			Refused: func(_ api.AuditEntry, why string) { t.Error(why) },
			Measure: func(_ string, next http.HandlerFunc) http.HandlerFunc { return next },
			Conns:   conns.New(conns.Config{}),
			Caps:    func(string) Caps { return Caps{} },
			Large:   func() int64 { return 1 },
			Log:     slog.New(slog.DiscardHandler),
		}, []Route{JSON("GET "+api.PathJobs, access.ByUsers, work).Large(), Done("POST "+api.PathJobs, access.ByUsers, submit)})
		g.making = places.NewGate(1, maxMaking) // half of the processors, on any machine
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var took []time.Duration
		var running sync.WaitGroup
		for user, n := range programs {
			for range n {
				running.Go(func() { // ends with ctx
					for ctx.Err() == nil {
						began := time.Now()
						r := httptest.NewRequestWithContext(ctx, http.MethodGet, api.PathJobs, nil)
						r.Header.Set("X-User", user)
						w := httptest.NewRecorder()
						if g.ServeHTTP(w, r); ctx.Err() != nil {
							return
						}
						if w.Code != http.StatusOK {
							t.Errorf("%s is answered %d: %s", user, w.Code, w.Body)
							return
						}
						if user != "ann" {
							mu.Lock()
							took = append(took, time.Since(began))
							mu.Unlock()
						}
					}
				})
			}
		}
		time.Sleep(10 * time.Second)
		cancel()
		running.Wait()
		slices.Sort(took)
		p99 = took[len(took)*99/100]
	})
	return p99
}
