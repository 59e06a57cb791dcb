package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/reach"
)

// answering is a program at an address that says something to whoever asks, whatever
// that is. What came before the question would be taken for no answer to it.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			go func() { // ends with the connection
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return // the client is gone
				}
				_, _ = io.WriteString(c, text)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestNothingOfAnAnswer: of what is at an address that a user named they hear its status,
// and nothing else that it says, which could be long or not meant for them. Where nothing
// is heard they all get the same sentence, and the log what it was.
func TestNothingOfAnAnswer(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.TLS = &tls.Config{}
	secure.StartTLS()
	defer secure.Close()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		switch addr {
		case "none.example:80":
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Server: "hush:53", IsNotFound: true}}
		case "lost.example:80":
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Server: "hush:53"}}
		case "closed.example:80":
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		case "silent.example:80":
			return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		case "inside.example:80":
			return nil, &net.OpError{Op: "dial", Err: &reach.Error{Text: "inside this site"}}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	tests := map[string]struct{ url, want, logged string }{
		"status":         {answering(t, "HTTP/1.1 503 hush "+strings.Repeat("x", 10_000)+"\r\nContent-Length: 0\r\n\r\n"), "it answers 503 Service Unavailable", ""},
		"unknown status": {answering(t, "HTTP/1.1 799 hush\r\nContent-Length: 0\r\n\r\n"), "it answers 799", ""},
		"redirect":       {answering(t, "HTTP/1.1 302 hush\r\nLocation: http://hush.example/\r\nContent-Length: 0\r\n\r\n"), "it answers 302 Found", ""},
		"long status":    {answering(t, "HTTP/1.1 503 "+strings.Repeat("x", 1<<20)+"\r\nContent-Length: 0\r\n\r\n"), "not HTTP", ""},
		"long header":    {answering(t, "HTTP/1.1 200 OK\r\nHush: "+strings.Repeat("x", 1<<20)+"\r\n\r\n"), "not HTTP", ""},
		"banner":         {answering(t, "SSH-2.0-hush\r\n"), "not HTTP", ""},
		"bad header":     {answering(t, "HTTP/1.1 200 OK\r\nhush hush\r\n\r\n"), "not HTTP", ""},
		"no name":        {"http://none.example/", unreachable, "no such host"},
		"lost name":      {"http://lost.example/", unreachable, "server misbehaving"},
		"closed":         {"http://closed.example/", unreachable, "connection refused"},
		"silent":         {"http://silent.example/", unreachable, "it does not answer within 10s"},
		"inside":         {"http://inside.example/", unreachable, "inside this site"},
		"certificate":    {secure.URL, "nobody whom this machine trusts", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Sender{now: time.Now}
			err := s.post(t.Context(), client(dial), letter{url: tc.url, id: "1"})
			if got := fmt.Sprint(err); !strings.Contains(got, tc.want) || strings.Contains(got, "hush") || len(got) > 200 {
				t.Errorf("got %.300q, want %q", got, tc.want)
			}
			if tc.want == unreachable && err.Error() != unreachable || !strings.Contains(detail(err).Error(), tc.logged) {
				t.Errorf("users read %q, the log %q", err, detail(err))
			}
		})
	}
}
