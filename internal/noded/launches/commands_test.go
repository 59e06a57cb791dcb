package launches

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// TestCommands: what a container says of itself does not reach the controller, only
// what its node says of it; and nothing but the API can be asked.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	var asked []string
	controller := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+string(body)+" "+r.Header.Get(api.HeaderWithin)+r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("X-Forwarded-For"))
	})}
	l, err := net.Listen("unix", filepath.Join(dir, "gctld.sock"))
	if err != nil {
		t.Fatal(err)
	}
	go controller.Serve(l) // ended by Close
	t.Cleanup(func() { controller.Close() })
	c := &client.Client{Address: filepath.Join(dir, "gctld.sock")}
	t.Cleanup(c.Close)
	ask, err := c.Within("n1 7_0.1.0 uuid", Unreached)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenCommands(dir, ask, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inside := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "api"))
	}}}
	t.Cleanup(inside.CloseIdleConnections)
	do := func(method, path string) int {
		q := httptest.NewRequest(method, "http://x"+path, strings.NewReader("{}"))
		q.RequestURI = ""
		for _, name := range []string{api.HeaderWithin, "Authorization", "Cookie", "X-Forwarded-For"} {
			q.Header.Set(name, "forged")
		}
		r, err := inside.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.StatusCode
	}
	if code := do("POST", "/v1/jobs?a=b"); code != http.StatusOK || len(asked) != 1 || asked[0] != "POST /v1/jobs?a=b {} n1 7_0.1.0 uuid" {
		t.Errorf("%d, %q", code, asked)
	}
	for _, x := range [][2]string{{"DELETE", "/v1/tokens/x"}, {"GET", "/metrics"}, {"PUT", "/v1/jobs"}} {
		if code := do(x[0], x[1]); code != http.StatusForbidden || len(asked) != 1 {
			t.Errorf("%s: %d, %q", x, code, asked)
		}
	}
	controller.Close()
	if code := do("POST", "/v1/jobs"); code != http.StatusServiceUnavailable {
		t.Errorf("without a controller: %d", code)
	}
	s.Close()
	if _, err := inside.Get("http://x/v1/jobs"); err == nil {
		t.Error("it is served after the rank's end")
	}
}
