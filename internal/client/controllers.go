package client

import (
	"context"
	"net/http"

	"gbatch/internal/api"
)

// Controllers lists the controllers that have all records in common. Operators only.
func Controllers(ctx context.Context, c *Client) (*api.ControllerList, error) {
	return get[api.ControllerList](ctx, c, api.PathControllers, nil)
}

// Leader is the name of the controller that leads, as the one that is asked knows; "": that knows of none.
func Leader(ctx context.Context, c *Client) (string, error) {
	l, err := get[api.Leader](ctx, c, api.PathLeader, nil)
	if err != nil {
		return "", err
	}
	return l.Name, nil
}

// AddController lets another controller take part. Root on the machine of the one that leads only, who
// gets all keys.
func AddController(ctx context.Context, c *Client, n api.NewController) (*api.JoinFile, error) {
	return answerOf[api.JoinFile](ctx, c, request{method: http.MethodPost, path: api.PathControllers, in: n, repeat: true})
}

// RemoveController lets a controller take part no longer. Admins only.
func RemoveController(ctx context.Context, c *Client, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathController, name)})
}

// TransferLead lets another controller lead; "any": the one that is the least behind. Admins only.
func TransferLead(ctx context.Context, c *Client, name string) error {
	return c.call(ctx, request{method: http.MethodPost, path: namePath(api.PathLead, name)})
}
