package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
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

// PostStreamAt sends a node's bytes for stream id (api.StreamRequest.ID) until
// body ends; the first of them stands at offset of its log. It returns when the
// controller has taken them or wants no more: an answer that comes before the
// body's end (the client went away) makes it return early, and a not_found
// error means that nobody waits for the stream any longer.
func (c *Client) PostStreamAt(ctx context.Context, id string, offset int64, body io.Reader) error {
	header := map[string]string{api.HeaderOffset: strconv.FormatInt(offset, 10)}
	return c.call(ctx, request{method: http.MethodPost, path: idPath(api.PathStream, id), header: header, stream: body})
}

// FailStream says that the node cannot serve stream id and why, in a sentence
// for the user who waits for it.
func (c *Client) FailStream(ctx context.Context, id, why string) error {
	why = strings.Join(strings.Fields(why), " ") // a header holds no line breaks
	header := map[string]string{api.HeaderStreamError: why}
	return c.call(ctx, request{method: http.MethodPost, path: idPath(api.PathStream, id), header: header, stream: http.NoBody})
}
