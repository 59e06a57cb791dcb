// Command gadm is for those who run a site: nodes, GPUs and reservations, and
// who may do what.
package main

import (
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag

	Drain        drainCmd     `cmd:"" help:"Take nodes, or one GPU, out of scheduling. What runs there goes on."`
	Resume       resumeCmd    `cmd:"" help:"Put nodes, or one GPU, back."`
	Forget       forgetCmd    `cmd:"" help:"Drop nodes that are gone for good."`
	Reserve      reserveCmd   `cmd:"" help:"Keep nodes, or some of their GPUs, for some jobs or for nobody, during a span of time."`
	Unreserve    unreserveCmd `cmd:"" help:"Remove reservations."`
	Reservations listCmd      `cmd:"" help:"List reservations."`

	Project    projectCmd    `cmd:"" help:"Projects: who is billed, and who may use what."`
	Policy     policyCmd     `cmd:"" help:"The rules in force."`
	Audit      auditCmd      `cmd:"" help:"Who changed what."`
	Token      tokenCmd      `cmd:"" help:"Tokens, by which users speak from other machines."`
	NodeToken  nodeTokenCmd  `cmd:"" help:"Tokens, by which machines become nodes."`
	RevokeNode revokeNodeCmd `cmd:"" help:"Take nodes' keys away: they are heard no more, and lost in time."`
	Diag       diagCmd       `cmd:"" help:"How the controller fares: its loop, commits, scheduling rounds, and requests."`
	Completion completionCmd `cmd:"" help:"Print what makes a shell complete the words of all commands."`
	JoinString joinStringCmd `cmd:"" help:"Print the address by which other machines reach the controller."`
}

type diagCmd struct{}

func (c *diagCmd) Run(ctx context.Context, app *cli.App) error { return app.Diag(ctx) }

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Run(app *cli.App) error { return cli.Completion(app.Out, c.Shell) }

type drainCmd struct {
	Nodes  []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
	GPU    string   `name:"gpu" placeholder:"INDEX|UUID" help:"Only this GPU of each node."`
	Reason string   `short:"r" required:"" help:"Why. Everyone whose job waits for the node sees it."`
}

func (c *drainCmd) Run(ctx context.Context, app *cli.App) error {
	return app.Drain(ctx, cli.DrainOptions{Nodes: c.Nodes, GPU: c.GPU, Reason: c.Reason})
}

type resumeCmd struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
	GPU   string   `name:"gpu" placeholder:"INDEX|UUID" help:"Only this GPU of each node."`
}

func (c *resumeCmd) Run(ctx context.Context, app *cli.App) error {
	return app.Resume(ctx, cli.DrainOptions{Nodes: c.Nodes, GPU: c.GPU})
}

type forgetCmd struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes that ginfo shows as lost, as gpu[01-04]."`
}

func (c *forgetCmd) Run(ctx context.Context, app *cli.App) error { return app.Forget(ctx, c.Nodes) }

type reserveCmd struct {
	Name        string        `arg:"" help:"Its name. Jobs give the UUID that it gets in reservationIds."`
	From        string        `default:"now" help:"Start: 2026-03-01T18:00:00Z, now, or +2h."`
	Until       string        `help:"End, in the same form."`
	For         time.Duration `help:"Length instead of an end, as 90m."`
	Nodes       []string      `sep:"none" xor:"which" help:"These nodes, as gpu[01-04]."`
	Count       int           `xor:"which" help:"Or so many nodes; which ones is chosen now."`
	GPUs        int           `name:"gpus" xor:"gpu" placeholder:"N" help:"Only so many GPUs of each node; which ones is chosen now."`
	GPU         []string      `name:"gpu" xor:"gpu" placeholder:"INDEX|UUID" help:"Only these GPUs of the one node."`
	GPUModel    []string      `name:"gpu-model" help:"With --count or --gpus: of these models."`
	Cluster     int           `short:"p" help:"With --count: of this cluster."`
	Project     []string      `short:"A" help:"For jobs of these projects."`
	User        []string      `short:"u" help:"For jobs of these users."`
	Maintenance bool          `help:"For nobody."`
	Reason      string        `short:"r" help:"Why."`
}

func (c *reserveCmd) Run(ctx context.Context, app *cli.App) error {
	return app.Reserve(ctx, cli.ReserveOptions{From: c.From, Until: c.Until, For: c.For, Reservation: api.Reservation{
		Name: c.Name, Nodes: c.Nodes, Count: c.Count, GPUs: c.GPU, GPUsPerNode: c.GPUs, GPUModels: c.GPUModel, Cluster: c.Cluster,
		Projects: c.Project, Users: c.User, Maintenance: c.Maintenance, Reason: c.Reason,
	}})
}

type unreserveCmd struct {
	Names []string `arg:"" help:"Reservations."`
}

func (c *unreserveCmd) Run(ctx context.Context, app *cli.App) error {
	return app.Unreserve(ctx, c.Names)
}

type listCmd struct{}

func (c *listCmd) Run(ctx context.Context, app *cli.App) error { return app.Reservations(ctx) }

func main() {
	cli.Main(cli.Program{
		Name:  "gadm",
		About: "For those who run a site: nodes and GPUs, reservations, projects, tokens, and who changed what.",
		Examples: []string{
			"gadm drain gpu[01-02] -r \"new driver\"               # no new jobs there",
			"gadm drain gpu03 --gpu 5 -r \"ECC errors\"            # one bad GPU of eight",
			"gadm project add vision --gid 2001 -g vision-lab     # members are a unix group's",
			"gadm node-token create --uses 8 > join.token        # for eight new nodes",
			"gadm reserve fix --nodes gpu04 --from +2h --for 4h --maintenance",
			"gadm reserve demo --nodes gpu05 --gpus 2 --for 3h -u ann   # two GPUs of eight",
		},
	}, &command{})
}
