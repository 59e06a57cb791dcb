package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// HTTP is a file on a web server.
func (c *Client) HTTP(uri string) (Source, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fail(Invalid, "is no URI")
	}
	if err := c.scheme(u.Scheme); err != nil {
		return nil, err
	}
	t := c.transport()
	client := &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return fail(Invalid, "leads from one place to the next, more than 5 times")
		}
		return c.scheme(r.URL.Scheme)
	}}
	return &httpSource{c: c, http: client, transport: t, uri: u.String()}, nil
}

type httpSource struct {
	c         *Client
	http      *http.Client
	transport way
	uri       string
}

func (s *httpSource) Close() { s.transport.CloseIdleConnections() }

// List asks for the first byte: unlike HEAD, that works with signed URIs.
func (s *httpSource) List(ctx context.Context) ([]Object, error) {
	o := Object{Size: -1, FromStart: true}
	err := s.c.retry(ctx, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.c.Stall)
		defer cancel()
		resp, err := s.get(ctx, "bytes=0-0", "")
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if o.Version = version(resp.Header); len(o.Version) > maxCalled {
			return false, shortNames(o.Version)
		}
		switch resp.StatusCode {
		case http.StatusOK:
			o.Size = resp.ContentLength
		case http.StatusPartialContent:
			_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
			if n, err := strconv.ParseInt(total, 10, 64); err == nil && n >= 0 {
				o.Size, o.FromStart = n, false
			}
		case http.StatusRequestedRangeNotSatisfiable:
			o.Size = 0
		}
		return false, nil
	})
	return []Object{o}, err
}

// version is what tells one content from another. A weak tag does not.
func version(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

func (s *httpSource) Open(ctx context.Context, o Object, from, to int64) (io.ReadCloser, error) {
	if o.FromStart {
		resp, err := s.get(ctx, "", "")
		if err != nil {
			return nil, err
		}
		if o.Size >= 0 && resp.ContentLength != o.Size {
			resp.Body.Close()
			return nil, fail(Invalid, "was changed while it was being fetched")
		}
		return part(resp.Body, to), nil
	}
	resp, err := s.get(ctx, fmt.Sprintf("bytes=%d-%d", from, to-1), o.Version)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusPartialContent || !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)) ||
		o.Version != "" && version(resp.Header) != o.Version {
		resp.Body.Close()
		return nil, fail(Invalid, "was changed while it was being fetched")
	}
	return part(resp.Body, to-from), nil
}

// get makes one request. An answer that a try later may not give again is no
// *Error.
func (s *httpSource) get(ctx context.Context, byteRange, ifRange string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.uri, nil)
	if err != nil {
		return nil, fail(Invalid, "is no URI")
	}
	req.Header.Set("User-Agent", "gbatch")
	req.Header.Set("Accept-Encoding", "identity")
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	if ifRange != "" {
		req.Header.Set("If-Range", ifRange)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return nil, e
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent ||
		resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && byteRange == "bytes=0-0" {
		return resp, nil
	}
	resp.Body.Close()
	return nil, statusError(resp.StatusCode)
}

// statusError says what an HTTP status means for a transfer.
func statusError(code int) error {
	text := fmt.Sprintf("%d %s", code, http.StatusText(code))
	switch {
	case code == 404 || code == 410:
		return fail(NotFound, "there is nothing there (%s)", text)
	case code == 401 || code == 403:
		return fail(Denied, "the server does not let it be read (%s)", text)
	case code == 408 || code == 425 || code == 429 || code >= 500:
		return fmt.Errorf("the server answered %s", text)
	}
	return fail(Invalid, "the server answered %s", text)
}
