package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/ctld/access"
)

// Bounds of one session's way to one port.
const (
	maxConns  = 64 // to the job at once, as gexec forwards; more wait
	idleConns = 16 // that are kept for what is asked next
	idleTime  = time.Minute
	maxHeader = 64 << 10 // bytes of an answer's header
)

// visit is a browser at a place, by the session that it has.
type visit struct {
	id    access.Identity
	at    place
	until time.Time
	host  string // of the request, as the browser has it
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit { return ctx.Value(visitKey{}).(*visit) }

// local is the port's address as the job knows it, which servers that listen there for
// their own machine alone take for theirs.
func (v *visit) local() string { return "localhost:" + strconv.Itoa(int(v.at.port)) }

func (p *Ports) transport() *http.Transport {
	return &http.Transport{
		DialContext: p.dial, MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
}

// dial connects to a job. What waits for the connection has the same session and place:
// rewrite names it so.
func (p *Ports) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	v := visitOf(ctx)
	leave, e := p.Enter(v.id, http.MethodGet, true)
	if e != nil {
		return nil, e
	}
	j, e := p.job(v.at)
	if e != nil {
		leave()
		return nil, e
	}
	live, cancel := context.WithDeadline(p.live, v.until)
	stop := context.AfterFunc(v.id.Ended, cancel)
	over := func() {
		stop()
		cancel()
		leave()
	}
	conn, err := p.Streams.Dial(live, v.id, j, v.at.rank, v.at.port)
	if err != nil {
		over()
		return nil, err
	}
	return &counted{Conn: conn, over: over}, nil
}

// counted is a connection that gives its place free.
type counted struct {
	net.Conn
	over func() // may be called more than once
}

func (c *counted) Close() error {
	defer c.over()
	return c.Conn.Close()
}

// rewrite makes of a browser's request that of the job: as if its user sat at the job's
// machine, and without what the controller knows the user by.
func (p *Ports) rewrite(r *httputil.ProxyRequest) {
	v := visitOf(r.In.Context())
	r.Out.URL.Scheme, r.Out.URL.Host = "http", v.id.Token+"."+v.at.label() // by which connections are kept apart
	r.Out.Host = v.local()
	h := r.Out.Header
	p.Auth.StripOurs(h)
	if h.Get("Origin") != "" {
		h.Set("Origin", "http://"+v.local()) // no other was let through
	}
	if from, ok := strings.CutPrefix(h.Get("Referer"), "https://"+v.host+"/"); ok && !strings.HasPrefix("/"+from, own) {
		h.Set("Referer", "http://"+v.local()+"/"+from)
	} else {
		h.Del("Referer")
	}
	h.Set("X-Forwarded-Host", v.host)
	h.Set("X-Forwarded-Proto", "https")
}

// beyond are headers by which a server says something of more than its own address, or of
// how it is reached, which is not its to say.
var beyond = []string{"Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Nel", "Report-To", "Public-Key-Pins"}

// rewriteAnswer keeps what the job answers to the job's own address.
func (p *Ports) rewriteAnswer(r *http.Response) error {
	v := visitOf(r.Request.Context())
	for _, name := range beyond {
		r.Header.Del(name)
	}
	cookies := r.Header.Values("Set-Cookie")
	r.Header.Del("Set-Cookie")
	for _, c := range cookies {
		if own, ok := ownCookie(c); ok {
			r.Header.Add("Set-Cookie", own)
		}
	}
	for _, name := range []string{"Location", "Content-Location"} {
		if to, err := url.Parse(r.Header.Get(name)); err == nil && (to.Host == v.local() || to.Host == fmt.Sprintf("127.0.0.1:%d", v.at.port)) {
			to.Scheme, to.Host = "https", v.host
			r.Header.Set(name, to.String())
		}
	}
	r.Header.Set("Origin-Agent-Cluster", "?1") // no other job's page is of the same origin, whatever both say
	return nil
}

// ownCookie is a cookie as a job may set it: for its own host name, and none of ours.
func ownCookie(text string) (string, bool) {
	parts := strings.Split(text, ";")
	name, _, named := strings.Cut(parts[0], "=")
	if name = strings.TrimSpace(name); !named || name == "" || access.IsOurs(name) {
		return "", false // a cookie without a name is sent as if its value had one
	}
	kept := parts[:1]
	for _, part := range parts[1:] {
		if key, _, _ := strings.Cut(part, "="); !strings.EqualFold(strings.TrimSpace(key), "domain") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ";"), true
}

// final is an answer without those before it (103 and the like), which the job's own headers
// would come with as they are.
type final struct{ http.ResponseWriter }

func (w final) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w final) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail says why a job gave no answer. A page is asked for again by the browser: what is to
// listen there may still be starting.
func (p *Ports) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		panic(http.ErrAbortHandler) // the browser has gone, or the session has ended
	}
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		w.Header().Set("Refresh", "3")
	}
	refuse(w, asError(err))
}

// brokenText is what went wrong below HTTP in words for a user; empty: nothing that is known.
func brokenText(err error) string {
	if strings.Contains(err.Error(), "malformed HTTP") {
		return "what listens there does not speak HTTP"
	}
	return ""
}
