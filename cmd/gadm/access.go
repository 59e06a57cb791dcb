package main

import (
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/client"
)

// Who may do what: tokens, nodes' keys, projects, rules, and what was changed.

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token for a user and print it, this once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Take tokens out of force, at once."`
}

type tokenCreateCmd struct {
	User string        `short:"u" help:"For this user. Default: you."`
	For  time.Duration `default:"720h" help:"How long it holds, as 24h; at most 366 days."`
	Note string        `help:"What it is for."`
}

func (c *tokenCreateCmd) Run(ctx context.Context, app *cli.App) error {
	return app.CreateToken(ctx, api.TokenRequest{Use: api.TokenUser, User: c.User, Note: c.Note}, c.For)
}

type tokenListCmd struct {
	All bool `short:"a" help:"Everyone's, and those to join nodes."`
}

func (c *tokenListCmd) Run(ctx context.Context, app *cli.App) error { return app.Tokens(ctx, c.All) }

type tokenRevokeCmd struct {
	IDs []string `arg:"" name:"id" help:"Tokens, as list shows them."`
}

func (c *tokenRevokeCmd) Run(ctx context.Context, app *cli.App) error {
	return app.RevokeTokens(ctx, c.IDs)
}

type nodeTokenCmd struct {
	Create nodeTokenCreateCmd `cmd:"" help:"Make a token by which machines become nodes, and print it, this once."`
}

type nodeTokenCreateCmd struct {
	Node string        `xor:"which" help:"For the node of this name only."`
	Uses int           `xor:"which" help:"For so many nodes. Default: 1."`
	For  time.Duration `default:"1h" help:"How long it holds, as 30m; at most 30 days."`
	Note string        `help:"What it is for."`
}

func (c *nodeTokenCreateCmd) Run(ctx context.Context, app *cli.App) error {
	return app.CreateToken(ctx, api.TokenRequest{Use: api.TokenJoin, Node: c.Node, Uses: c.Uses, Note: c.Note}, c.For)
}

type revokeNodeCmd struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
}

func (c *revokeNodeCmd) Run(ctx context.Context, app *cli.App) error {
	return app.RevokeNodes(ctx, c.Nodes)
}

type joinStringCmd struct{}

func (joinStringCmd) Run(ctx context.Context, app *cli.App) error { return app.JoinString(ctx) }

type projectCmd struct {
	List   projectListCmd   `cmd:"" help:"List projects."`
	Add    projectAddCmd    `cmd:"" help:"Make a project."`
	Set    projectSetCmd    `cmd:"" help:"Change a project."`
	Remove projectRemoveCmd `cmd:"" help:"Remove projects that have no jobs."`
}

type projectListCmd struct{}

func (projectListCmd) Run(ctx context.Context, app *cli.App) error { return app.Projects(ctx) }

type projectFlags struct {
	Name       string           `arg:"" help:"The project."`
	GID        *int             `name:"gid" help:"Group of its storage."`
	Shares     *int64           `help:"Its shares of the cluster, beside other projects'."`
	Parent     *string          `help:"A project whose share it has a part of; empty: none."`
	Budget     *int64           `help:"GPU minutes that it and those below it may use; 0: no bound."`
	Period     *string          `name:"budget-period" placeholder:"month" help:"month: the budget is for each calendar month; empty: in all."`
	UserShares map[string]int64 `name:"user-share" placeholder:"USER=N" help:"Of its share, what a user has beside others; 0: as others."`
	Member     []string         `short:"u" help:"The users that are its members; or, as in +ann,-bob, who comes and goes. What begins with - is written --member=-bob."`
	Group      []string         `short:"g" help:"The unix groups whose members are its members, in the same form."`
	Everyone   bool             `help:"No members: everyone may use it."`
	Cluster    []int            `short:"p" help:"The clusters that its jobs may use."`
	AnyCluster bool             `help:"All clusters."`
	Running    *int             `help:"At most so many jobs at once; 0: the site's bound."`
	Queued     *int             `help:"At most so many waiting jobs; 0: the site's bound."`
	GPUs       *float64         `name:"gpus" help:"At most so many GPUs at once; 0: the site's bound."`
	GPUMinutes *int64           `name:"gpu-minutes" help:"At most so many GPU minutes of running jobs; 0: the site's bound."`
}

func (f *projectFlags) change() cli.ProjectChange {
	return cli.ProjectChange{
		GID: f.GID, Shares: f.Shares, Members: f.Member, Groups: f.Group, AnyMembers: f.Everyone, Clusters: f.Cluster, AnyCluster: f.AnyCluster,
		Parent: f.Parent, Budget: f.Budget, BudgetPeriod: f.Period, UserShares: f.UserShares,
		Running: f.Running, Queued: f.Queued, GPUs: f.GPUs, GPUMinutes: f.GPUMinutes,
	}
}

type projectAddCmd struct{ projectFlags }

func (c *projectAddCmd) Run(ctx context.Context, app *cli.App) error {
	return app.AddProject(ctx, c.Name, c.change())
}

type projectSetCmd struct{ projectFlags }

func (c *projectSetCmd) Run(ctx context.Context, app *cli.App) error {
	return app.SetProject(ctx, c.Name, c.change())
}

type projectRemoveCmd struct {
	Names []string `arg:"" help:"Projects."`
}

func (c *projectRemoveCmd) Run(ctx context.Context, app *cli.App) error {
	return app.RemoveProjects(ctx, c.Names)
}

type policyCmd struct {
	Show   policyShowCmd   `cmd:"" help:"Print the rules in force."`
	Check  policyCheckCmd  `cmd:"" help:"Check the controller's configuration file, and say what a reload would change."`
	Reload policyReloadCmd `cmd:"" help:"Take the rules as the file has them now, all or none."`
}

type policyShowCmd struct{}

func (policyShowCmd) Run(ctx context.Context, app *cli.App) error { return app.ShowPolicy(ctx) }

type policyCheckCmd struct{}

func (policyCheckCmd) Run(ctx context.Context, app *cli.App) error { return app.LoadPolicy(ctx, true) }

type policyReloadCmd struct{}

func (policyReloadCmd) Run(ctx context.Context, app *cli.App) error {
	return app.LoadPolicy(ctx, false)
}

type auditCmd struct {
	User   string        `short:"u" help:"Only what this user did."`
	Object string        `help:"Only what was done to this: a node, a project, a job's number, a token."`
	Since  time.Duration `help:"Only of the last so long, as 24h."`
	Limit  int           `short:"n" default:"100" help:"The last so many, at most 10000."`
}

func (c *auditCmd) Run(ctx context.Context, app *cli.App) error {
	f := client.AuditFilter{User: c.User, Object: c.Object, Limit: c.Limit}
	if c.Since > 0 {
		f.Since = app.Now().Add(-c.Since)
	}
	return app.Audit(ctx, f)
}
