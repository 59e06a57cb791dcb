package conns

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/pki"
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

// TestHandshakesAtOnce: no more handshakes than that are computed at the same time, and who says nothing keeps nobody from one.
func TestHandshakesAtOnce(t *testing.T) {
	began := time.Now()
	now := func() time.Time { return began } // the clock of the certificates is no bubble's
	authority, err := pki.Open(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	server := authority.ServerTLS()
	synctest.Test(t, func(t *testing.T) {
		var computed atomic.Int32
		goOn := make(chan struct{})
		from := &pipes{}
		ln := TLS(from, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			computed.Add(1)
			<-goOn
			return server.GetConfigForClient(h)
		}})
		places := cap(ln.(*tlsListener).places)
		accept := func() net.Conn {
			here, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = here.Close() })
			go func() { // ends with the handshake, or with the connection
				if here.(*tls.Conn).Handshake() != nil {
					_ = here.Close()
				}
			}()
			return from.callers[len(from.callers)-1]
		}
		for range 3 * places { // these never say anything
			accept()
		}
		done := make(chan error)
		for range 3 * places {
			there := accept()
			go func() { // ended below
				c := tls.Client(there, pki.ClientTLS(authority.Pin(), now, nil))
				done <- c.Handshake()
				_, _ = c.Read(make([]byte, 1)) // until the end
			}()
		}
		synctest.Wait()
		if n := int(computed.Load()); n != places {
			t.Errorf("%d handshakes are computed at the same time, want %d", n, places)
		}
		close(goOn)
		for range 3 * places {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := len(ln.(*tlsListener).places); n != 0 {
			t.Errorf("%d places are taken when all handshakes are over", n)
		}
		for _, c := range from.callers {
			_ = c.Close()
		}
	})
}
