package client

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// deafListener accepts connections that can all be made deaf: what arrives on
// them is not answered, as behind a firewall that forgot them.
type deafListener struct {
	net.Listener
	accepted atomic.Int32
	deaf     atomic.Bool
}

type deafConn struct {
	net.Conn
	deaf *atomic.Bool
	old  bool
}

func (l *deafListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	return &deafConn{Conn: c, deaf: &l.deaf, old: !l.deaf.Load()}, nil
}

// Write drops answers on the connections that were made before.
func (c *deafConn) Write(p []byte) (int, error) {
	if c.old && c.deaf.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestOneDeadConnectionDropsTheIdleOnes: ten connections of the pool die
// unnoticed; the first request that waits in vain is the only one.
func TestOneDeadConnectionDropsTheIdleOnes(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &deafListener{Listener: inner}
	var together sync.WaitGroup
	together.Add(10)
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.deaf.Load() {
			together.Done()
			together.Wait() // so that each has a connection of its own
		}
		_, _ = w.Write([]byte("{}"))
	})}}
	srv.Start()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	// The address is a socket's in name only: the transport leads to the listener.
	c := &Client{Address: "unix:///nowhere", Timeout: 20 * time.Second}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	transport := c.http.Transport.(*http.Transport)
	transport.DialContext = (&net.Dialer{}).DialContext
	c.peer.base = srv.URL
	t.Cleanup(c.Close)
	ask := func() error {
		return c.call(t.Context(), request{method: http.MethodGet, path: "/"})
	}
	var asked sync.WaitGroup
	for range 10 {
		asked.Go(func() {
			if err := ask(); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	l.deaf.Store(true)
	c.Timeout = 100 * time.Millisecond
	if err := ask(); !IsUnavailable(err) {
		t.Fatalf("the first request on a dead connection: %v", err)
	}
	c.Timeout = 20 * time.Second
	if err := ask(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if n := l.accepted.Load(); n != 11 {
		t.Errorf("%d connections in all, want 11", n)
	}
}
