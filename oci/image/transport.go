package image

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"gbatch/oci/image/bounds"
)

// boundedTransport is the way to one registry and to what it redirects to. It refuses
// plain http where it is not allowed: the registry client falls back to it for
// private addresses, which would send passwords in the clear. Where addresses
// may lead is not decided here but by who connects, the store.
type boundedTransport struct {
	insecure []string
	stall    time.Duration
	next     *http.Transport
}

// transport returns the transport of a registry or mirror, which is kept for
// its open connections as long as its certificates are the same.
func (w *worker) transport(s *session, l hostLogin) (*boundedTransport, error) {
	made, err := json.Marshal([]any{l.Name, l.Certs, s.Insecure, s.Stall})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(made)
	key := hex.EncodeToString(sum[:])
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.transports[key]; t != nil {
		return t, nil
	}
	tlsConfig, err := l.TLS()
	if err != nil {
		return nil, err
	}
	t := newTransport(s, tlsConfig, w.dial)
	w.transports[key] = t
	return t, nil
}

func newTransport(s *session, tlsConfig *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *boundedTransport {
	return &boundedTransport{insecure: s.Insecure, stall: s.stall(), next: &http.Transport{
		DialContext:           dial,
		TLSClientConfig:       tlsConfig,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: s.stall(),
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
	}}
}

// bulk marks the context of a request whose answer may be as long as a layer.
type bulk struct{}

// RoundTrip bounds every answer but that to a request for a layer, in length
// and time: manifests, tokens and errors come from strangers.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !plainHTTP(r.URL.Host, t.insecure) {
		return nil, http.ErrSchemeMismatch
	}
	if r.Context().Value(bulk{}) != nil && strings.Contains(first(r).URL.Path, "/blobs/") {
		return t.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.stall)
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = bounds.Small(resp.Body, maxBlob, cancel, func() error {
		return fail(Corrupt, "%s sent more than %d bytes where a manifest or a token was due", r.URL.Host, maxBlob)
	})
	return resp, nil
}

// first is the request that led to this one by redirects.
func first(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

// plainHTTP reports whether a host ("host" or "host:port") may be spoken to
// without TLS: those of the list, and loopback, where nobody listens in.
func plainHTTP(hostport string, insecure []string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	for _, allowed := range insecure {
		if strings.EqualFold(allowed, hostport) || strings.EqualFold(allowed, host) {
			return true
		}
	}
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
