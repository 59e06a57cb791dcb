package conns

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes are connections that come as soon as they are accepted.
type pipes struct {
	net.Listener
	callers []net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	here, there := net.Pipe()
	p.callers = append(p.callers, there)
	return here, nil
}

// TestHandshakesAtOnce: no more handshakes than that are under way at the same time, and who says nothing keeps nobody
// from one for long.
func TestHandshakesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &pipes{}
		ln := TLS(from, &tls.Config{})
		began := time.Now()
		accept := func(n int, after time.Duration) {
			t.Helper()
			for range n {
				c, err := ln.Accept()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
			}
			if took := time.Since(began); took != after {
				t.Errorf("%d connections were taken after %v, want %v", len(from.callers), took, after)
			}
		}
		accept(handshakes, 0)
		accept(1, handshake)
		accept(handshakes-1, handshake)
		_ = from.callers[len(from.callers)-1].Close() // its handshake fails
		synctest.Wait()
		accept(1, handshake)
		accept(1, 2*handshake)
		for _, c := range from.callers {
			_ = c.Close()
		}
	})
}
