package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
