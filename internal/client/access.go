package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"gbatch/internal/api"
)

// CreateToken makes a token. Its secret is in the answer and nowhere else; an
// exchange that breaks off is not repeated.
func (c *Client) CreateToken(ctx context.Context, r api.TokenRequest) (*api.Token, error) {
	return answerOf[api.Token](ctx, c, request{method: http.MethodPost, path: api.PathTokens, in: r})
}

// LoginSite says where to log in.
func LoginSite(ctx context.Context, c *Client) (*api.LoginSite, error) {
	return get[api.LoginSite](ctx, c, api.PathLogin, nil)
}

// Login makes a token of what the identity provider said.
func Login(ctx context.Context, c *Client, r api.LoginRequest) (*api.Token, error) {
	return answerOf[api.Token](ctx, c, request{method: http.MethodPost, path: api.PathLogin, in: r})
}

// Tokens lists the caller's tokens, or everyone's.
func (c *Client) Tokens(ctx context.Context, all bool) (*api.TokenList, error) {
	return get[api.TokenList](ctx, c, api.PathTokens, query{}.flag("all", all))
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
	return get[api.Site](ctx, c, api.PathSite, nil)
}

// Projects lists the projects that the caller may know of.
func (c *Client) Projects(ctx context.Context) (*api.ProjectList, error) {
	return get[api.ProjectList](ctx, c, api.PathProjects, nil)
}

// PutProject makes a project, or replaces one. Admins only.
func (c *Client) PutProject(ctx context.Context, p api.Project, create bool) (*api.Project, error) {
	q := query{"create": {strconv.FormatBool(create)}}
	out := new(api.Project)
	return out, c.call(ctx, request{method: http.MethodPut, path: namePath(api.PathProject, p.Name), query: q, in: p, out: out})
}

// DropProject removes a project. Admins only.
func (c *Client) DropProject(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: namePath(api.PathProject, name)})
}

// Policy is the rules in force. Operators only.
func (c *Client) Policy(ctx context.Context) (*api.Policy, error) {
	return get[api.Policy](ctx, c, api.PathPolicy, nil)
}

// CheckPolicy says what ReloadPolicy would do. Admins only.
func (c *Client) CheckPolicy(ctx context.Context) (*api.Policy, error) {
	return answerOf[api.Policy](ctx, c, request{method: http.MethodPost, path: api.PathPolicyTest, repeat: true})
}

// ReloadPolicy has the controller take the rules as its file has them. Admins
// only.
func (c *Client) ReloadPolicy(ctx context.Context) (*api.Policy, error) {
	return answerOf[api.Policy](ctx, c, request{method: http.MethodPost, path: api.PathPolicyLoad, repeat: true})
}

// AuditFilter selects entries of the audit log; what is empty selects all.
type AuditFilter struct {
	User, Object string
	Since        time.Time
	Limit        int // 0: the controller's
}

// Audit reads the audit log, newest first. Operators only.
func (c *Client) Audit(ctx context.Context, f AuditFilter) (*api.AuditList, error) {
	q := query{}.text("user", f.User).text("object", f.Object).number("limit", int64(max(f.Limit, 0)))
	if !f.Since.IsZero() {
		q.text("since", f.Since.UTC().Format(time.RFC3339))
	}
	return get[api.AuditList](ctx, c, api.PathAudit, q)
}

// simulating is how much longer than others an answer may take that is simulated.
const simulating = time.Minute

// WhatIf says who would wait for how long by other rules or with more nodes. Operators
// only.
func WhatIf(ctx context.Context, c *Client, in api.WhatIfRequest) (*api.WhatIf, error) {
	return answerOf[api.WhatIf](ctx, c, request{method: http.MethodPost, path: api.PathWhatIf, in: in, repeat: true, hold: simulating})
}
