package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"sync"
	"time"

	jsonexp "github.com/go-json-experiment/json"

	"gbatch/internal/api"
	"gbatch/internal/munge"
	"gbatch/internal/pki"
)

// defaultTimeout is how long a request waits for the controller's answer when
// Client.Timeout is not set. A long poll waits that much longer than it asked
// the controller to hold it.
const defaultTimeout = 30 * time.Second

// connectTimeout is how long a connection may take, and TLS on it.
const connectTimeout = 10 * time.Second

// Client talks to one controller. The zero value finds the controller and the
// token as Find does, on first use. It is safe for concurrent use; its fields
// must not change while a call is under way.
type Client struct {
	Address   string        // unix:///path, /path, or https://host:port#pin
	Token     string        // bearer token; empty on a local socket, where the kernel says who calls
	Munge     *Munge        // instead of a token: MUNGE says who calls; nil: it does not
	UserAgent string        // as "gqueue/1.2"
	Timeout   time.Duration // to wait for an answer; 0: DefaultTimeout
	Retry     Retry         // of requests that are safe to repeat; zero: none

	// Certificate is what a node shows that it is; nil, or a nil answer: nothing.
	Certificate func() *tls.Certificate

	// Transport replaces the connection to Address, in tests. Nil: HTTP to Address.
	Transport http.RoundTripper

	once sync.Once
	peer endpoint
	http *http.Client
	err  error // what is wrong with Address
}

// Munge is how to reach MUNGE on this machine.
type Munge struct {
	Socket string // of its daemon; empty: the usual one
}

// request is one exchange. in and out are JSON bodies; raw and stream, if set, are
// sent as they are.
type request struct {
	method string
	path   string
	query  query
	header map[string]string
	in     any
	raw    []byte // a body that is no JSON
	stream io.Reader
	out    any
	hold   time.Duration // how much longer than Timeout the answer may take
	repeat bool          // sending it twice does no harm
}

func (c *Client) open() error {
	c.once.Do(func() {
		if c.Address == "" {
			found, err := Find(Options{})
			if err != nil {
				c.err = err
				return
			}
			c.Address = found.Address
			if c.Token == "" {
				c.Token, c.Munge = found.Token, found.Munge
			}
		}
		if c.peer, c.err = parseAddress(c.Address); c.err != nil {
			return
		}
		c.http = &http.Client{Transport: c.Transport, CheckRedirect: noRedirect}
		if c.Transport == nil {
			c.http.Transport = c.peer.newTransport(c.Certificate)
		}
	})
	return c.err
}

// newTransport makes the connections to the endpoint; certificate is as
// [Client.Certificate].
func (e endpoint) newTransport(certificate func() *tls.Certificate) http.RoundTripper {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     pki.ClientTLS(e.pin, time.Now, certificate),
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		ReadBufferSize:      64 << 10, // of long lists, which are read while they come
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	t.DialContext = dialer.DialContext
	if e.socket != "" {
		t.Proxy = nil
		t.DisableCompression = true // it costs more than the copy
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", e.socket)
		}
	}
	t.DialTLSContext = connects(dialer, t.TLSClientConfig)
	if len(e.hosts) > 0 {
		t.DialTLSContext = newDials(t.DialTLSContext).dial
		return newSeveral(t, e.hosts)
	}
	return t
}

// noRedirect stops at redirects: the contract has none, and following one
// would hand the token to whoever sent it.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close drops idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// call makes the exchange and decodes the answer, repeating it as Retry
// allows.
func (c *Client) call(ctx context.Context, r request) error {
	if err := c.open(); err != nil {
		return err
	}
	body := r.raw
	if r.in != nil {
		var err error
		if body, err = json.Marshal(r.in); err != nil {
			return fmt.Errorf("encode request for %s: %w", r.path, err)
		}
	}
	try := func() error {
		resp, err := c.send(ctx, r, body)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return c.peer.decode(resp, r.out)
	}
	if !r.repeat {
		return try()
	}
	return c.Retry.repeat(ctx, try)
}

// mostAtOnce is for how many jobs of a list room is made before they are read: they
// are large, so that growing would copy much, and how many come is but said.
const mostAtOnce = 100_000

// decode reads an answer of the endpoint while it comes. A connection that breaks in the middle of
// it counts as unreachable; bytes that are no JSON do not.
func (e endpoint) decode(resp *http.Response, out any) error {
	body := &broken{Reader: resp.Body}
	if out == nil {
		_, err := io.Copy(io.Discard, body)
		return err
	}
	reflect.ValueOf(out).Elem().SetZero() // of a try before that broke
	if list, ok := out.(*api.JobList); ok {
		rows, _ := strconv.Atoi(resp.Header.Get(api.HeaderRows)) // of a controller that says nothing: none
		list.Jobs = make([]api.Job, 0, min(max(rows, 0), mostAtOnce))
	}
	// Long lists are what gqueue spends its time on, and this reader takes half the time of encoding/json for them.
	if err := jsonexp.UnmarshalRead(body, out); body.err != nil {
		return body.err
	} else if err != nil {
		return fmt.Errorf("decode the answer of the controller at %s: %w", e, err)
	}
	return nil
}

// broken notes why no more could be read.
type broken struct {
	io.Reader
	err error
}

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// send makes one exchange up to the answer's header. The caller closes the
// body. The timeout ends with the header: a body may be a log that is followed
// for days.
func (c *Client) send(ctx context.Context, r request, body []byte) (*http.Response, error) {
	rd := r.stream
	if body != nil {
		rd = bytes.NewReader(body)
	}
	sendCtx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(sendCtx, r.method, c.peer.base+r.path, rd)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("build request for %s: %w", r.path, err)
	}
	if len(r.query) > 0 {
		req.URL.RawQuery = url.Values(r.query).Encode()
	}
	r.describe(req.Header)
	if err := c.sayWho(ctx, req.Header, req.Method, req.URL.RequestURI(), body); err != nil {
		cancel(nil)
		return nil, err
	}
	timer := time.AfterFunc(c.timeout()+r.hold, func() {
		cancel(fmt.Errorf("no answer within %v", c.timeout()+r.hold))
	})
	if r.stream != nil {
		timer.Stop() // the answer comes when the stream ends
	}
	resp, err := c.http.Do(req)
	timer.Stop()
	if err != nil {
		cause := context.Cause(sendCtx) // the timer's, if it fired
		cancel(nil)
		if cause != nil {
			err = cause
		}
		return nil, c.broken(ctx, err)
	}
	resp.Body = &answerBody{body: resp.Body, broken: func(err error) error { return c.broken(ctx, err) }, cancel: cancel}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, answerError(resp)
	}
	return resp, nil
}

// describe sets the headers that say what is sent, and those that the request has
// of its own.
func (r request) describe(h http.Header) {
	h.Set("Accept", "application/json")
	if r.in != nil {
		h.Set("Content-Type", "application/json")
	}
	if r.stream != nil || r.raw != nil {
		h.Set("Content-Type", "application/octet-stream")
	}
	for k, v := range r.header {
		h.Set(k, v)
	}
}

// sayWho sets the headers by which the controller knows the caller.
func (c *Client) sayWho(ctx context.Context, h http.Header, method, uri string, body []byte) error {
	if c.UserAgent != "" {
		h.Set("User-Agent", c.UserAgent)
	}
	switch {
	case c.Token != "":
		h.Set("Authorization", "Bearer "+c.Token)
	case c.Munge != nil && c.peer.socket == "": // on a socket the kernel says it
		credential, err := munge.Encode(ctx, c.Munge.Socket, munge.Payload(method, uri, body))
		if err != nil {
			return fmt.Errorf("get a MUNGE credential: %w", err)
		}
		h.Set("Authorization", munge.Scheme+credential)
	}
	return nil
}

func (c *Client) timeout() time.Duration { return cmp.Or(max(c.Timeout, 0), defaultTimeout) }

// broken names a failed connection, unless it is the caller who gave up. What
// broke one connection, a firewall that forgot it or a controller that was
// moved, most likely broke the idle ones too, and each would cost the next
// request the whole timeout: so they are dropped.
func (c *Client) broken(ctx context.Context, err error) error {
	cause := ctx.Err()
	if !errors.Is(cause, context.Canceled) {
		c.http.CloseIdleConnections()
	}
	if cause != nil {
		return cause
	}
	return &Unreachable{Address: c.peer.String(), Err: plainNetError(err)}
}

// plainNetError strips what repeats the address: the URL and the dial prefix.
func plainNetError(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if oe, ok := errors.AsType[*net.OpError](err); ok && oe.Op == "dial" {
		return oe.Err
	}
	return err
}

// answerBody is an answer's body: it names the controller when the connection
// breaks, and releases the request's context when it is closed.
type answerBody struct {
	body   io.ReadCloser
	broken func(error) error
	cancel context.CancelCauseFunc
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && err != io.EOF {
		err = b.broken(err)
	}
	return n, err
}

func (b *answerBody) Close() error {
	err := b.body.Close()
	b.cancel(nil)
	return err
}
