package ctld

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// TestFront: who asked a controller while it followed asks it over the same connection when it leads, and when it follows again. What it
// answers when it leads ends then, also where nobody takes the answer.
func TestFront(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c := site.Default()
	c.Socket, c.Listen = filepath.Join(dir, "s"), "127.0.0.1:0"
	log := slog.New(slog.DiscardHandler)
	waits := make(chan struct{}, 1)
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/waits":
				waits <- struct{}{}
				<-r.Context().Done()
			case "/sends":
				for _, err := w.Write(nil); err == nil; {
					_, err = w.Write(make([]byte, 64<<10))
				}
			}
			_, _ = io.WriteString(w, text)
		})
	}
	f, err := openFront(reach{func() ([]net.Listener, error) { return listenAt(c, log) }, func() *site.Config { return &c }, authority}, says("follows"), log)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	anyone := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is not asked who answers
	defer anyone.CloseIdleConnections()
	ask := func(path string) (text string, again bool) {
		trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "https://"+f.lns[1].Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := anyone.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), again
	}
	if text, again := ask("/"); text != "follows" || again {
		t.Errorf("it says %q, over a connection of before: %t", text, again)
	}
	leads := func() bool { return f.leads.Load() != nil }
	if leads() || f.bounds().PerAddress != 0 {
		t.Error("it leads, or counts by address")
	}
	f.table.Tell(func(class string, n int) { counted[class] += n }, func(string) {})
	if counted["visitor"] != 1 {
		t.Errorf("connections: %v, want one visitor", counted)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { f.serve(ctx, says("leads")) }) // ends with ctx
	waitFor(t, "it leads", leads)
	if text, again := ask("/"); text != "leads" || !again {
		t.Errorf("it says %q, over a connection of before: %t", text, again)
	}
	if f.bounds().PerAddress != c.Connections.PerAddress {
		t.Error("it does not count by address")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+f.lns[1].Addr().String()+"/sends", nil)
	if err != nil {
		t.Fatal(err)
	}
	untaken, err := anyone.RoundTrip(r) // over a connection of its own, as the other one is idle: it is not read
	if err != nil {
		t.Fatal(err)
	}
	defer untaken.Body.Close()
	go func() { <-waits; stop() }() // ends when it is asked below
	if text, _ := ask("/waits"); text != "leads" {
		t.Errorf("when it leads no more, it says %q", text)
	}
	serving.Wait()
	if text, again := ask("/"); text != "follows" || !again {
		t.Errorf("when it leads no more, it says %q, over a connection of before: %t", text, again)
	}
	if err := f.end(); err != nil {
		t.Error(err)
	}
}

// TestFrontWaits: who asks a controller that reads its records waits for it, over one connection, and is told so after a while.
func TestFrontWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &front{began: make(chan struct{})}
		f.before = http.HandlerFunc(f.wait)
		f.down = t.Context()
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			return w
		}
		if w := ask(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "reads its records") {
			t.Errorf("in vain: %d %s", w.Code, w.Body)
		}
		answered := make(chan string)
		go func() { answered <- ask().Body.String() }() // ends with the answer
		synctest.Wait()
		ctx, end := context.WithCancel(t.Context())
		f.srv, f.end = new(http.Server), func() error { return nil }
		over := make(chan error)
		go func() { // ends with ctx
			over <- f.answer(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answers") }))
		}()
		if got := <-answered; got != "answers" {
			t.Errorf("answered %q", got)
		}
		end()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
