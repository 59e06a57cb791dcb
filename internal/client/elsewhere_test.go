package client

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
)

// stage is three controllers: the first one has what it was asked and stands still, and
// another one leads after a while.
type stage struct {
	mu     sync.Mutex                 // guards asked
	leads  func() string              // as the other two say
	knows  map[string]bool            // hosts that can be asked who leads
	asked  map[string]int             // how often each host was
	answer func(string) io.ReadCloser // to what is not who leads; nil: none
}

func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	name, _, _ := strings.Cut(r.URL.Host, ":")
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{api.HeaderController: {name}}}
	switch {
	case r.URL.Path != api.PathLeader:
		if out.Body = s.answer(name); out.Body == nil {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return out, nil
	case !s.knows[name]:
		s.ask(name)
		out.StatusCode, out.Body = http.StatusMisdirectedRequest, http.NoBody
		return out, nil
	}
	s.ask(name)
	for end := time.Now().Add(50 * time.Second); s.leads() == r.URL.Query().Get("not") && time.Now().Before(end); {
		if err := Sleep(r.Context(), time.Second); err != nil {
			return nil, err
		}
	}
	out.Body = io.NopCloser(strings.NewReader(`{"name":"` + s.leads() + `"}`))
	return out, nil
}

func (s *stage) ask(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name]++
}

func (s *stage) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

// endless is an answer of which nothing more comes until it is given up.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }
func (endless) Close() error               { return nil }

// TestLeaderElsewhere: who waits for a controller that closes no connection and does not lead any more, is told so by another
// one, soon after that one knows it; and nobody is disturbed while it leads.
func TestLeaderElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		knows []string
		at    time.Duration // another one leads from then
		asked int           // at most, of all
	}{
		"soon":                    {[]string{"b", "c"}, 10 * time.Second, 2},
		"at once":                 {[]string{"b", "c"}, 0, 2},
		"after minutes":           {[]string{"b", "c"}, 5 * time.Minute, 9},
		"one of them is older":    {[]string{"c"}, time.Minute, 9},
		"that one leads later on": {[]string{"b"}, time.Minute, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, first := time.Now(), true
				st := &stage{knows: map[string]bool{}, asked: map[string]int{}}
				for _, h := range tc.knows {
					st.knows[h] = true
				}
				st.leads = func() string {
					if time.Since(began) < tc.at {
						return "a"
					}
					return "b"
				}
				st.answer = func(host string) io.ReadCloser {
					if host == "a" && !first {
						return nil
					}
					first = false
					return io.NopCloser(strings.NewReader(`{}`))
				}
				c := &Client{Address: "/none", Transport: newSeveral(st, []string{"a:1", "b:1", "c:1"}), Timeout: time.Hour}
				if _, err := c.NodeSync(t.Context(), "n", &api.SyncRequest{}); err != nil {
					t.Fatal(err)
				}
				_, err := c.NodeSync(t.Context(), "n", &api.SyncRequest{})
				if err == nil || !strings.Contains(err.Error(), "controller b leads now, and a has not answered") {
					t.Errorf("it ends by: %v", err)
				}
				if late := time.Since(began) - tc.at; late < 0 || late > heldAfter+heldSpread+time.Second && st.knows["c"] == st.knows["b"] {
					t.Errorf("it ends %v after another one leads", late)
				}
				if asked := st.counts(); asked["b"]+asked["c"] > tc.asked || asked["a"] > 0 {
					t.Errorf("asked %v who leads, want %d at most, and not a", asked, tc.asked)
				}
				if _, err := c.NodeSync(t.Context(), "n", &api.SyncRequest{}); err != nil {
					t.Errorf("the next one: %v", err)
				}
			})
		})
	}
}

// TestStreamElsewhere: the same of an answer that goes on.
func TestStreamElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		st := &stage{knows: map[string]bool{"b": true, "c": true}, asked: map[string]int{}}
		st.leads = func() string {
			if time.Since(began) < time.Minute {
				return "a"
			}
			return "c"
		}
		st.answer = func(string) io.ReadCloser { return endless{ctx} }
		s := newSeveral(st, []string{"a:1", "b:1", "c:1"})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a:1/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		// What the transport does with a request that is given up.
		go func() { <-resp.Body.(*heldBody).ctx.Done(); cancel() }()
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "controller c leads now") {
			t.Errorf("it ends by: %v", err)
		}
	})
}

// TestOneHostTwice: an address that names one controller twice has nobody else to ask, and asks nobody.
func TestOneHostTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		st := &stage{asked: map[string]int{}, answer: func(string) io.ReadCloser { return nil }}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a:1/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := newSeveral(st, []string{"a:1", "a:1"}).RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Error("it was answered")
		}
		if asked := st.counts(); len(asked) > 0 {
			t.Errorf("asked who leads: %v", asked)
		}
	})
}
