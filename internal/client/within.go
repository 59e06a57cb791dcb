package client

import (
	"net/http"
	"net/http/httputil"
	"net/url"

	"gbatch/internal/api"
)

// Within passes requests of programs in a job on to the controller, as a node does;
// job says whose they are, as [api.HeaderWithin] has it. Nothing else by which the
// programs could say who they are goes along. Failed answers where the controller is
// not reached.
func (c *Client) Within(job string, failed func(http.ResponseWriter, *http.Request, error)) (http.Handler, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	to, err := url.Parse(c.peer.base)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{Transport: c.http.Transport, ErrorHandler: failed, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		kept := http.Header{}
		for _, name := range []string{"Accept", "Content-Type", "User-Agent", "Last-Event-Id", api.HeaderIdempotencyKey} {
			if v := r.In.Header.Get(name); v != "" {
				kept.Set(name, v)
			}
		}
		kept.Set(api.HeaderWithin, job)
		r.Out.Header = kept
	}}, nil
}
