package ctld

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
)

const jobsDomain = "jobs.example.org"

// served is a job whose server is a test's, and the node that leads to it.
type served struct {
	*testSite
	n     *fakeNode
	mu    sync.Mutex
	heard []*http.Request // what the job's server was asked
	app   net.Addr
	quiet func() // the node answers no more
}

// serving has job 1 of user root with a server at port 8888, as seen by a node.
func serving(t *testing.T, edit func(*site.Config)) *served {
	s := &served{testSite: newSite(t, func(c *site.Config) {
		c.Web.JobsDomain = jobsDomain
		c.Projects = []site.Project{{Name: "default"}, {Name: "named", Members: byName("mia")}}
		if edit != nil {
			edit(c)
		}
	})}
	req := hello(1)
	req.Project = "named"
	s.submit(req, "")
	s.n = s.node("n1")
	s.n.sync(nil)
	for id := range s.n.held {
		s.n.report(id, node.PhaseRunning, nil)
	}
	app := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(app.Close)
	s.app = app.Listener.Addr()
	s.answers()
	t.Cleanup(func() { s.quiet() })
	return s
}

// answers has the node answer until it is quiet.
func (s *served) answers() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var all sync.WaitGroup
	s.quiet = func() { cancel(); all.Wait() }
	all.Go(func() { s.n.forward(ctx, &all, s.app.String()) }) // ends with ctx
}

// serve is what the job serves.
func (s *served) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.heard = append(s.heard, r.Clone(context.Background()))
	s.mu.Unlock()
	switch r.URL.Path {
	case "/socket":
		c, err := websocket.Accept(w, r, nil) // of the same origin alone, as notebooks do
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(context.Background())
			if err != nil || c.Write(context.Background(), kind, append([]byte("heard "), data...)) != nil {
				return
			}
		}
	case "/evil":
		h := w.Header()
		for _, c := range []string{"a=1; Path=/; Domain=example.org", "b=2; domain = jobs.example.org; HttpOnly", "__Host-gbatch=x; Path=/; Secure", "__HOST-gbatch-port=x; Path=/; Secure", "=__Host-gbatch-port=x", "novalue"} {
			h.Add("Set-Cookie", c)
		}
		h.Set("Clear-Site-Data", `"cookies"`)
		h.Set("Strict-Transport-Security", "max-age=1; includeSubDomains")
		h.Set("Alt-Svc", `h2="evil.example:443"`)
		http.Redirect(w, r, "http://localhost:8888/next", http.StatusFound)
	default:
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader("job says "+r.Method+" "), r.Body))
	}
}

// forward answers what clients ask of the node's ports by a server elsewhere.
func (n *fakeNode) forward(ctx context.Context, all *sync.WaitGroup, address string) {
	known := map[string]bool{}
	for ctx.Err() == nil {
		req := &api.SyncRequest{Instance: "i-" + n.name, InventoryHash: "h", Seen: n.seen, WaitMS: 5000}
		for _, st := range n.held {
			req.Ranks = append(req.Ranks, st)
		}
		resp, err := n.s.NodeSync(ctx, n.name, req)
		if err != nil {
			continue // the controller restarts, or the test is over
		}
		n.seen = resp.Version
		for _, st := range resp.Streams {
			if known[st.ID] || st.Kind != api.StreamForward {
				continue
			}
			known[st.ID] = true
			c, err := n.s.DialStream(ctx, st.ID)
			if err != nil {
				continue
			}
			all.Go(func() { joinPort(ctx, c, address) }) // ends with ctx
		}
	}
}

// joinPort is what a node does with a stream to a port.
func joinPort(ctx context.Context, st *client.Stream, address string) {
	defer st.Close()
	if f, err := st.Receive(ctx); err != nil || string(f.Data) != `{"port":8888}` {
		if err == nil {
			_ = st.Send(ctx, api.FailureFrame(125, "nothing listens on that port of the job"))
			_, _ = st.Receive(ctx)
		}
		return
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() { // ends with conn
		buf := make([]byte, api.FrameChunk)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				_ = st.Send(ctx, api.Frame{Type: api.FrameEndOutput})
				return
			}
			if st.Send(ctx, api.Frame{Type: api.FrameOutput, Data: buf[:n]}) != nil {
				return
			}
		}
	}()
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return
		}
		if f.Type == api.FrameInput {
			_, _ = conn.Write(f.Data)
			_ = st.Send(ctx, api.CountFrame(api.FrameWindow, len(f.Data)))
		}
	}
}

// link asks for a port as the page does.
func (s *served) link(c *http.Cookie, port int, path string) (*api.PortLink, int) {
	s.t.Helper()
	r := s.request("POST", "", fmt.Sprintf("/v1/jobs/1/ports/%d", port), strings.NewReader(fmt.Sprintf(`{"path": %q}`, path)))
	r.Header = of(c, "same-origin")
	r.Header.Set("Content-Type", "application/json")
	answer, text := s.send(r)
	var l api.PortLink
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Fatal(err)
		}
	}
	return &l, answer.StatusCode
}

// request is one at a host name, or at the controller's own.
func (s *served) request(method, host, path string, body io.Reader) *http.Request {
	s.t.Helper()
	address, _, _ := strings.Cut(s.remote(), "#")
	r, err := http.NewRequestWithContext(s.t.Context(), method, address+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	return r
}

func (s *served) send(r *http.Request) (*http.Response, string) {
	s.t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// enter exchanges a link, as a page at an address does.
func (s *served) enter(host, secret, from string) (*http.Cookie, int) {
	s.t.Helper()
	r := s.request("POST", host, "/.gbatch/enter", strings.NewReader(secret))
	r.Header.Set("Sec-Fetch-Site", from)
	answer, _ := s.send(r)
	if l := answer.Cookies(); len(l) > 0 {
		return l[0], answer.StatusCode
	}
	return nil, answer.StatusCode
}

// get asks the job for a path with the cookie that a browser has been given.
func (s *served) get(host string, c *http.Cookie, path, from string) (*http.Response, string) {
	s.t.Helper()
	r := s.request("GET", host, path, nil)
	r.Header.Set("Sec-Fetch-Site", from)
	if c != nil {
		r.AddCookie(c)
	}
	return s.send(r)
}

// opened is a port that a session has come to: its host and cookie.
func (s *served) opened(session *http.Cookie) (host string, c *http.Cookie) {
	s.t.Helper()
	l, status := s.link(session, 8888, "")
	if status != http.StatusOK {
		s.t.Fatalf("a link: status %d", status)
	}
	c, status = s.enter(l.Host, l.Secret, "same-origin")
	if status != http.StatusOK || c == nil {
		s.t.Fatalf("to enter by it: status %d, cookie %v", status, c)
	}
	return l.Host, c
}

func (s *served) sessionOf(user string) *http.Cookie {
	return s.session(s.token(api.TokenRequest{Use: api.TokenUser, User: user}).Secret)
}

// dial opens a WebSocket of the job's, as a page of an origin does.
func (s *served) dial(host string, c *http.Cookie, origin string) (*websocket.Conn, error) {
	address, _, _ := strings.Cut(s.remote(), "#")
	conn, _, err := websocket.Dial(s.t.Context(), "wss"+strings.TrimPrefix(address, "https")+"/socket", &websocket.DialOptions{
		Host: host, HTTPHeader: http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {origin}},
		HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	})
	return conn, err
}
