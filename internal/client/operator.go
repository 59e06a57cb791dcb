package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gbatch/internal/api"
)

// Backup opens a backup of the controller, with the key of secrets or without.
// Only root on its machine gets one. The caller reads it to io.EOF and closes it.
func (c *Client) Backup(ctx context.Context, vault bool) (io.ReadCloser, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	q := query{"vault": {strconv.FormatBool(vault)}}
	resp, err := c.send(ctx, request{method: http.MethodPost, path: api.PathBackup, query: q}, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Diag is how the controller fares. Operators only.
func (c *Client) Diag(ctx context.Context) (*api.Diagnosis, error) {
	return get[api.Diagnosis](ctx, c, api.PathDiag, nil)
}

// Drain takes a node, or one GPU of it, out of scheduling. Operators only. It returns
// the jobs that have to leave.
func (c *Client) Drain(ctx context.Context, node string, req api.DrainRequest) (*api.DrainResult, error) {
	return answerOf[api.DrainResult](ctx, c, request{method: http.MethodPost, path: namePath(api.PathDrain, node), in: req, repeat: true})
}

// Resume puts a node, or one GPU of it, back. Operators only.
func (c *Client) Resume(ctx context.Context, node string, req api.DrainRequest) error {
	return c.call(ctx, request{method: http.MethodPost, path: namePath(api.PathResume, node), in: req, repeat: true})
}

// Forget drops a node that is gone for good, and with giveUpJobs what may run
// there without contact. Operators only.
func (c *Client) Forget(ctx context.Context, node string, giveUpJobs bool) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathNode, node), query: query{}.flag("giveUpJobs", giveUpJobs), repeat: true})
}

// Reservations lists the advance reservations.
func (c *Client) Reservations(ctx context.Context) (*api.ReservationList, error) {
	return get[api.ReservationList](ctx, c, api.PathReservations, nil)
}

// Reserve makes an advance reservation, or replaces the one of the same name.
// Operators only. It returns it with the nodes and GPUs that were chosen.
func (c *Client) Reserve(ctx context.Context, r api.Reservation) (*api.Reservation, error) {
	return answerOf[api.Reservation](ctx, c, request{method: http.MethodPost, path: api.PathReservations, in: r, repeat: true})
}

// Unreserve removes a reservation, or of one that comes again only the time that is,
// or comes next. Operators only.
func (c *Client) Unreserve(ctx context.Context, name string, once bool) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathReservation, name), query: query{}.flag("once", once), repeat: !once})
}

func namePath(pattern, name string) string {
	return strings.Replace(pattern, "{name}", url.PathEscape(name), 1)
}
