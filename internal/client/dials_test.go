package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/pki"
)

// TestOneConnectionIsMade: what was begun for a request that went on to the next host is waited for, and used, by the next one that
// comes to this host.
func TestOneConnectionIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		ready := make(chan struct{})
		d := &dials{hosts: map[string]chan struct{}{}, connect: func(context.Context, string, string) (net.Conn, error) {
			begun.Add(1)
			<-ready
			here, there := net.Pipe()
			go func() { // ends with the connection
				for in := bufio.NewReader(there); ; {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_ = req.Body.Close()
					_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			return here, nil
		}}
		one := &http.Transport{DialTLSContext: d.dial}
		defer one.CloseIdleConnections()
		ask := func(wait time.Duration) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://c1:1/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, _, err := exchange(one, r, wait, func(context.CancelCauseFunc) func() { return func() {} })
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		for range 3 {
			if err := ask(time.Second); !errors.Is(err, errConnectLate) {
				t.Errorf("before there is a connection: %v", err)
			}
		}
		last := make(chan error)
		go func() { last <- ask(time.Second) }() // ended below
		synctest.Wait()
		close(ready)
		if err := <-last; err != nil {
			t.Error(err)
		}
		if n := begun.Load(); n != 1 {
			t.Errorf("%d connections were begun for one host, want 1", n)
		}
	})
}

// TestGoesOn: a connection goes on from the last session by X25519 alone; one that does not, as the controller's secret is another
// one, agrees on keys as the first did.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	at := func(secret string) *pki.Authority {
		a, err := pki.Open(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		a.Secret = []byte(secret)
		return a
	}
	one := at("one")
	dial := connects(new(net.Dialer), pki.ClientTLS(one.Pin(), time.Now, nil))
	for _, step := range []struct {
		name    string
		at      *pki.Authority
		resumed bool
		by      tls.CurveID
	}{
		{"first", one, false, tls.X25519MLKEM768},
		{"again", one, true, tls.X25519},
		{"once more", one, true, tls.X25519},
		{"with another secret", at("other"), false, tls.X25519MLKEM768},
	} {
		ln, err := tls.Listen("tcp", "127.0.0.1:0", step.at.ServerTLS())
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends with the listener
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("x")) // with the ticket before it
				_ = c.Close()
			}
		}()
		c, err := dial(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Read(make([]byte, 1))
		s := c.(*tls.Conn).ConnectionState()
		if err := errors.Join(err, c.Close(), ln.Close()); err != nil || s.DidResume != step.resumed || s.CurveID != step.by {
			t.Errorf("%s: resumed %t by %v, %v", step.name, s.DidResume, s.CurveID, err)
		}
	}
}
