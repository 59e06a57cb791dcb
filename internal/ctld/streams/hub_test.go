package streams

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// TestStreamOfAnotherNode: a node that names a stream of another finds none, and
// the other's is left as it is.
func TestStreamOfAnotherNode(t *testing.T) {
	h := NewHub()
	h.byID["secret"] = &stream{home: "gpu1"}
	ctx := access.WithCaller(t.Context(), access.Identity{Role: access.RoleNode, Node: "gpu2"}, "")
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/streams/secret", nil)
	r.SetPathValue("id", "secret")
	r.Header.Set(api.HeaderStreamError, "no")
	var e *api.Error
	if err := h.Serve(httptest.NewRecorder(), r); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Errorf("a stream of another node: %v", err)
	}
	if h.byID["secret"] == nil {
		t.Error("the other node's stream is gone")
	}
}

// TestLogOverAtOnce: a log that its node has sent whole before anybody waits for it comes to its end.
func TestLogOverAtOnce(t *testing.T) {
	for range 50 { // either of two things that are both so may be seen first
		synctest.Test(t, func(t *testing.T) {
			h, client := NewHub(), httptest.NewRecorder()
			node := access.WithCaller(t.Context(), access.Identity{Role: access.RoleNode, Node: "gpu1"}, "")
			send := func() {
				id := h.Take("gpu1")[0].ID
				r := httptest.NewRequestWithContext(node, "POST", "/v1/streams/"+id, strings.NewReader("all of it\n"))
				r.SetPathValue("id", id)
				if err := h.Serve(httptest.NewRecorder(), r); err != nil {
					t.Error(err)
				}
			}
			if err := h.copy(t.Context(), client, asked{node: "gpu1", wait: time.Minute, wake: send}); err != nil || client.Body.String() != "all of it\n" {
				t.Errorf("%q, %v", client.Body, err)
			}
		})
	}
}

// TestConnectionOfALog: a connection by which a node has sent a log is as good as before, though
// the client of the log goes as it ends.
func TestConnectionOfALog(t *testing.T) {
	h := NewHub()
	broken := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/streams/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := h.Serve(w, r.WithContext(access.WithCaller(r.Context(), access.Identity{Role: access.RoleNode, Node: "gpu1"}, ""))); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /sync", func(_ http.ResponseWriter, r *http.Request) { broken <- r.Context().Err() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	post := func(path string) {
		resp, err := srv.Client().Post(srv.URL+path, "", strings.NewReader("all of it\n"))
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
	}
	for range 1000 {
		sent := make(chan bool)
		ctx, gone := context.WithCancel(t.Context())
		send := func() {
			id := h.Take("gpu1")[0].ID
			go func() {
				post("/v1/streams/" + id)
				close(sent)
			}()
		}
		if err := h.copy(ctx, httptest.NewRecorder(), asked{node: "gpu1", wait: time.Minute, wake: send}); err != nil {
			t.Fatal(err)
		}
		gone() // as a request's context is, once it is answered
		<-sent
		post("/sync")
		if err := <-broken; err != nil {
			t.Fatalf("what the node asks next: %v", err)
		}
	}
}

// TestLogAtTheLastMoment: a node that dials back as its client gives up is waited for,
// since it writes to the client.
func TestLogAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, client := NewHub(), httptest.NewRecorder()
		dial := func() {
			id := h.Take("gpu1")[0].ID
			go func() {
				time.Sleep(time.Minute - 1)
				st := h.drop(id)
				time.Sleep(time.Second)
				close(st.begun)
				_, err := st.w.Write([]byte("all of it\n"))
				st.done <- err
			}()
		}
		if err := h.copy(t.Context(), client, asked{node: "gpu1", wait: time.Minute, wake: dial}); err != nil || client.Body.String() != "all of it\n" {
			t.Errorf("%q, %v", client.Body, err)
		}
	})
}

// TestStreamsAreShared: nobody can open all streams of the controller, and what one
// closes others can have.
func TestStreamsAreShared(t *testing.T) {
	h := NewHub()
	ends := map[string][]func(){}
	open := func(user string, n int) (opened int) {
		for range n {
			end, err := h.Begin(user)
			if err != nil {
				continue
			}
			opened++
			ends[user] = append(ends[user], end)
		}
		return opened
	}
	for _, tc := range []struct {
		user string
		want int
	}{{"b", maxStreams / 2}, {"b2", maxStreams / 4}, {"a", maxStreams / 8}, {"b", 0}} {
		if got := open(tc.user, tc.want+20); got != tc.want {
			t.Errorf("%s has opened %d, want %d", tc.user, got, tc.want)
		}
	}
	if got := open("a2", 3); got != 3 {
		t.Errorf("one who has none opened %d of 3", got)
	}
	for _, all := range ends {
		for _, end := range all {
			end()
		}
	}
	if h.Count() != 0 || len(h.byUser) != 0 {
		t.Errorf("all have ended, and %d are counted, of %v", h.Count(), h.byUser)
	}
	h.Wait()
	if _, err := h.Begin("a"); err == nil {
		t.Error("one began while the controller was being stopped")
	}
}
