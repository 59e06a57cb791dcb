package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gbatch/internal/api"
)

// Cluster lists the nodes and their GPUs.
func (c *Client) Cluster(ctx context.Context) (*api.ClusterInfo, error) {
	out := new(api.ClusterInfo)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathCluster, out: out, repeat: true})
}

// Status is the controller's version and counts, and who the caller is to it.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	out := new(api.Status)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathStatus, out: out, repeat: true})
}

// NodeSync is one exchange of node name with the controller: what the node
// holds against what it shall hold. The controller may keep it open for
// req.WaitMS. It is safe to repeat; the node daemon paces itself, so Retry is
// not applied.
func (c *Client) NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error) {
	out := new(api.SyncResponse)
	path := strings.Replace(api.PathNodeSync, "{name}", url.PathEscape(name), 1)
	hold := time.Duration(max(req.WaitMS, 0)) * time.Millisecond
	return out, c.call(ctx, request{method: http.MethodPost, path: path, in: req, out: out, hold: hold})
}

// PostStream sends a node's bytes for stream id (api.StreamRequest.ID) until
// body ends, and returns when the controller has taken them or wants no more.
// A body that is an io.Closer is closed. An answer that comes before the
// body's end (the client went away) makes it return early; a not_found error
// means that nobody waits for the stream any longer.
func (c *Client) PostStream(ctx context.Context, id string, body io.Reader) error {
	return c.call(ctx, request{method: http.MethodPost, path: idPath(api.PathStream, id), stream: body})
}
