package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
)

// Cluster lists the nodes and their GPUs.
func (c *Client) Cluster(ctx context.Context) (*api.ClusterInfo, error) {
	return get[api.ClusterInfo](ctx, c, api.PathCluster, nil)
}

// Plan is what nodes do and are to do, over time.
func Plan(ctx context.Context, c *Client) (*api.Plan, error) {
	return get[api.Plan](ctx, c, api.PathPlan, nil)
}

// Node is a node and what became of it lately.
func (c *Client) Node(ctx context.Context, name string) (*api.NodeDetail, error) {
	return get[api.NodeDetail](ctx, c, namePath(api.PathNode, name), nil)
}

// Status is the controller's version and counts, and who the caller is to it.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return get[api.Status](ctx, c, api.PathStatus, nil)
}

// Date is the controller's clock, to the second. It asks nothing that needs a
// login.
func (c *Client) Date(ctx context.Context) (time.Time, error) {
	if err := c.open(); err != nil {
		return time.Time{}, err
	}
	resp, err := c.send(ctx, request{method: http.MethodGet, path: "/healthz"}, nil)
	if err != nil {
		return time.Time{}, err
	}
	resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return date, fmt.Errorf("the controller does not tell its time: %w", err)
	}
	return date, nil
}

// NodeSync is one exchange of node name with the controller: what the node
// holds against what it shall hold. The controller may keep it open for
// req.WaitMS. It is safe to repeat; the node daemon paces itself, so Retry is
// not applied.
func (c *Client) NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error) {
	hold := time.Duration(max(req.WaitMS, 0)) * time.Millisecond
	return answerOf[api.SyncResponse](ctx, c, request{method: http.MethodPost, path: namePath(api.PathNodeSync, name), in: req, hold: hold})
}

// Launch records what srun starts in a job whose first rank node name has. It is
// safe to repeat; Retry is not applied.
func (c *Client) Launch(ctx context.Context, name string, req *api.LaunchRequest) (*api.LaunchResponse, error) {
	return answerOf[api.LaunchResponse](ctx, c, request{method: http.MethodPost, path: namePath(api.PathNodeLaunch, name), in: req})
}

// SendLogs sends what ranks of node name have written. It is safe to repeat; Retry
// is not applied.
func (c *Client) SendLogs(ctx context.Context, name string, req *api.LogPieces) (*api.LogsTaken, error) {
	return answerOf[api.LogsTaken](ctx, c, request{method: http.MethodPost, path: namePath(api.PathNodeLogs, name), in: req})
}

// JoinNode makes this machine node name: it shows a join token and a request
// (PEM) for its key, and gets a certificate (PEM). It is safe to repeat with
// the same key.
func (c *Client) JoinNode(ctx context.Context, name, token string, req []byte) ([]byte, error) {
	out := new(api.JoinResponse)
	header := map[string]string{"Authorization": "Bearer " + token}
	err := c.call(ctx, request{method: http.MethodPost, path: namePath(api.PathNodeJoin, name), in: api.JoinRequest{Request: string(req)}, out: out, header: header})
	return []byte(out.Certificate), err
}

// RenewNode gets the next certificate of the node that the client's present one
// is of, for the same key.
func (c *Client) RenewNode(ctx context.Context, name string, req []byte) ([]byte, error) {
	out := new(api.JoinResponse)
	err := c.call(ctx, request{method: http.MethodPost, path: namePath(api.PathNodeRenew, name), in: api.JoinRequest{Request: string(req)}, out: out})
	return []byte(out.Certificate), err
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
