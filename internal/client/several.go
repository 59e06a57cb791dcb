package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// several sends requests to whichever of several controllers leads: to the one that
// answered last, and on to the next where that one cannot be reached or says that it
// does not lead. Nothing was done there then.
type several struct {
	one   http.RoundTripper
	hosts []string
	at    atomic.Int32 // of hosts
}

// RoundTrip makes one exchange. An error of a request that went out is returned, as what came of it is not
// known; the next one begins at the next host.
func (s *several) RoundTrip(req *http.Request) (*http.Response, error) {
	from := int(s.at.Load())
	for try := 0; ; try++ {
		i := (from + try) % len(s.hosts)
		r := req.Clone(req.Context())
		r.URL.Host, r.Host = s.hosts[i], s.hosts[i]
		if try > 0 && req.GetBody != nil {
			var err error
			if r.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := s.one.RoundTrip(r)
		if err == nil && resp.StatusCode != http.StatusMisdirectedRequest {
			s.at.Store(int32(i))
			return resp, nil
		}
		s.at.Store(int32((i + 1) % len(s.hosts)))
		last := try == len(s.hosts)-1 || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil
		if last || err != nil && !unsent(err) || req.Context().Err() != nil {
			return resp, err
		}
		if resp != nil {
			_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // so that the connection can be used again
			_ = resp.Body.Close()
		}
	}
}

// unsent says that a request did not go out.
func unsent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// CloseIdleConnections is how an http.Client reaches the one below.
func (s *several) CloseIdleConnections() {
	if c, ok := s.one.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
