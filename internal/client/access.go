package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gbatch/internal/api"
)

// CreateToken makes a token. Its secret is in the answer and nowhere else; an
// exchange that breaks off is not repeated.
func (c *Client) CreateToken(ctx context.Context, r api.TokenRequest) (*api.Token, error) {
	out := new(api.Token)
	return out, c.call(ctx, request{method: http.MethodPost, path: api.PathTokens, in: r, out: out})
}

// Tokens lists the caller's tokens, or everyone's.
func (c *Client) Tokens(ctx context.Context, all bool) (*api.TokenList, error) {
	out, q := new(api.TokenList), url.Values{}
	if all {
		q.Set("all", "true")
	}
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathTokens, query: q, out: out, repeat: true})
}

// RevokeToken takes a token out of force.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: idPath(api.PathToken, id), repeat: true})
}

// RevokeNode takes a node's key away. Admins only.
func (c *Client) RevokeNode(ctx context.Context, node string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathNodeKey, node)})
}

// Site says how other machines reach the controller.
func (c *Client) Site(ctx context.Context) (*api.Site, error) {
	out := new(api.Site)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathSite, out: out, repeat: true})
}

// Projects lists the projects that the caller may know of.
func (c *Client) Projects(ctx context.Context) (*api.ProjectList, error) {
	out := new(api.ProjectList)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathProjects, out: out, repeat: true})
}

// PutProject makes a project, or replaces one. Admins only.
func (c *Client) PutProject(ctx context.Context, p api.Project, create bool) error {
	q := url.Values{"create": {strconv.FormatBool(create)}}
	return c.call(ctx, request{method: http.MethodPut, path: namePath(api.PathProject, p.Name), query: q, in: p})
}

// DropProject removes a project. Admins only.
func (c *Client) DropProject(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathProject, name)})
}

// Policy is the rules in force. Operators only.
func (c *Client) Policy(ctx context.Context) (*api.Policy, error) {
	out := new(api.Policy)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathPolicy, out: out, repeat: true})
}

// CheckPolicy says what ReloadPolicy would do. Admins only.
func (c *Client) CheckPolicy(ctx context.Context) (*api.Policy, error) {
	out := new(api.Policy)
	return out, c.call(ctx, request{method: http.MethodPost, path: api.PathPolicyTest, out: out, repeat: true})
}

// ReloadPolicy has the controller take the rules as its file has them. Admins
// only.
func (c *Client) ReloadPolicy(ctx context.Context) (*api.Policy, error) {
	out := new(api.Policy)
	return out, c.call(ctx, request{method: http.MethodPost, path: api.PathPolicyLoad, out: out, repeat: true})
}

// AuditFilter selects entries of the audit log; what is empty selects all.
type AuditFilter struct {
	User, Object string
	Since        time.Time
	Limit        int // 0: the controller's
}

// Audit reads the audit log, newest first. Operators only.
func (c *Client) Audit(ctx context.Context, f AuditFilter) (*api.AuditList, error) {
	q := url.Values{}
	for k, v := range map[string]string{"user": f.User, "object": f.Object} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	out := new(api.AuditList)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathAudit, query: q, out: out, repeat: true})
}
