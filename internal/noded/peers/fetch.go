package peers

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/pki"
	"gbatch/oci/image/share"
)

// Of are the nodes that the controller named for an image, in the order in which they are asked.
func Of(t *pki.NodeTLS, p *api.ImagePeers) (list []share.Peer) {
	if t == nil || p == nil {
		return nil
	}
	for _, n := range p.Nodes {
		list = append(list, &peer{tls: t, node: n, ticket: p.Ticket, authority: p.Authority})
	}
	return list
}

// peer is another node.
type peer struct {
	tls       *pki.NodeTLS
	node      api.ImagePeer
	ticket    string
	authority []byte
}

// connectIn is for another node to answer at all.
const connectIn = 3 * time.Second

// Layer asks for a layer. Each has a connection of its own: there are few, and none is left behind.
func (p *peer) Layer(ctx context.Context, of, digest string, wait time.Duration) (io.ReadCloser, error) {
	c, err := p.tls.Dial(p.node.Node, p.authority)
	if err != nil {
		return nil, err
	}
	q := url.Values{"image": {of}, "digest": {digest}, "wait": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.node.Address+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(ticketHeader, p.ticket)
	resp, err := transport(c).RoundTrip(req) // follows nothing, whatever the other says
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.Body, nil
	case http.StatusNotFound, http.StatusServiceUnavailable:
		err = share.ErrLacks
	case http.StatusGone:
		err = share.ErrNever
	default:
		err = fmt.Errorf("node %s answered %s", p.node.Node, resp.Status)
	}
	resp.Body.Close()
	return nil, err
}

func transport(c *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: connectIn}).DialContext, TLSHandshakeTimeout: connectIn, TLSClientConfig: c,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
	}
}
