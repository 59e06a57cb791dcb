package route

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientThatNeverReads: a client that asks and does not read is given up
// after answerTime, with what was kept for it; one that polls is not.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe() // no buffer: the first byte waits for a reader
		ln := &oneListener{conns: make(chan net.Conn, 1)}
		ln.conns <- here
		done := make(chan error, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Minute) // a long poll
			_, err := bounded(w, shortAnswer).Write(make([]byte, 1<<20))
			done <- err
		})}
		go srv.Serve(ln) // ended below
		go fmt.Fprint(there, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		began := time.Now()
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer was written: %v", err)
		}
		if took := time.Since(began); took != 5*time.Minute+answerTime {
			t.Errorf("it was given up after %v", took)
		}
		there.Close()
		srv.Close()
	})
}

// oneListener gives the connections that it has.
type oneListener struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneListener) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneListener) Addr() net.Addr { return &net.UnixAddr{Name: "test"} }
