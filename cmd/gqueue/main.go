// Command gqueue shows the queue and single jobs.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	List    listCommand    `cmd:"" default:"withargs" help:"List jobs (the default). The other commands: gqueue show, explain, events, secret, update and wait ID; see their --help."`
	Show    showCommand    `cmd:"" help:"Everything about a job, with its timeline."`
	Explain explainCommand `cmd:"" help:"Why a job waits, and what would help."`
	Secret  secretCommand  `cmd:"" help:"Give a job that waits or runs new values of its secrets."`
	Events  eventsCommand  `cmd:"" help:"What happened to a job, line by line; without one, all that happens."`
	Wait    waitCommand    `cmd:"" help:"Wait until jobs have ended."`
	Update  updateCommand  `cmd:"" help:"Give a running job other CPU and memory, or a waiting one another priority."`
}

type listCommand struct {
	IDs      []string `arg:"" optional:"" name:"id" help:"Only these jobs: numbers, UUIDs or the beginning of a UUID."`
	All      bool     `short:"a" help:"Also jobs that have ended."`
	Long     bool     `short:"l" xor:"columns" help:"More columns, and reasons in sentences."`
	Format   string   `short:"o" xor:"columns" placeholder:"FORMAT" help:"Columns by name, as id,name,state,left,priority; or Slurm's format, as '%i %.20j %T %M %R'; %.8i is 8 wide and flush right."`
	Priority bool     `xor:"columns" help:"Jobs that wait, with their priority by factor."`
	Sort     string   `short:"S" placeholder:"COLUMNS" help:"Order by these columns, as -priority,id; a minus for the largest first."`
	User     []string `short:"u" help:"Only jobs of these users."`
	Me       bool     `help:"Only your own jobs."`
	Project  []string `short:"A" help:"Only jobs of these projects."`
	States   []string `short:"t" help:"Only jobs in these states, as RUNNING,QUEUED; all; or Slurm's PD, R, CD, F."`
	Cluster  []int    `short:"p" help:"Only jobs of these clusters."`
	QOS      []string `name:"qos" short:"q" help:"Only jobs of these QOS."`
	Name     []string `short:"n" help:"Only jobs with these names."`
	Nodes    []string `short:"w" sep:"none" help:"Only jobs on these nodes, as gpu[01-04,07]."`
	Limit    int      `short:"c" help:"At most so many jobs."`
	NoHeader bool     `short:"h" help:"No header line."`
	Interval int      `short:"i" placeholder:"SECONDS" help:"Show it live, drawn again that often, until Ctrl-C."`
	Watch    bool     `help:"Show it live, as -i 2."`
	As       string   `placeholder:"SYSTEM" help:"States in the words of gpulab1, nvct, dstack, k8s, tao or slurm."`
}

func (c *listCommand) Run(ctx context.Context, app *cli.App) error {
	interval, err := cli.Interval(c.Interval, c.Watch)
	if err != nil {
		return err
	}
	return app.Queue(ctx, cli.QueueOptions{
		IDs: c.IDs, All: c.All, Me: c.Me, Users: c.User, Projects: c.Project, States: c.States,
		Clusters: c.Cluster, Names: c.Name, Nodes: c.Nodes, NoHeader: c.NoHeader, Long: c.Long,
		Format: c.Format, Interval: interval, Limit: c.Limit, As: c.As,
		Sort: c.Sort, Priority: c.Priority, QOS: c.QOS,
	})
}

type showCommand struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
	As  string   `placeholder:"SYSTEM" help:"The state in the words of gpulab1, nvct, dstack, k8s, tao or slurm."`
}

func (c *showCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Show(ctx, c.IDs, c.As)
}

type eventsCommand struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID. None: all that happens from now on."`
	Follow  bool     `short:"f" help:"Go on with what happens, until the jobs have ended or Ctrl-C."`
	User    string   `short:"u" help:"Without jobs: only what happens to those of this user."`
	Me      bool     `help:"Without jobs: only to your own."`
	Project string   `short:"A" help:"Without jobs: only to those of this project."`
}

func (c *eventsCommand) Run(ctx context.Context, app *cli.App) error {
	if len(c.IDs) > 0 && !c.Follow {
		return app.Events(ctx, c.IDs)
	}
	return app.FollowEvents(ctx, cli.EventsOptions{IDs: c.IDs, Me: c.Me, User: c.User, Project: c.Project})
}

type explainCommand struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
}

func (c *explainCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Explain(ctx, c.IDs)
}

type secretCommand struct {
	ID     string   `arg:"" help:"Number, UUID or the beginning of a UUID."`
	Values []string `arg:"" name:"secret" help:"NAME=VALUE, NAME@FILE, or NAME alone to take it from the environment."`
}

func (c *secretCommand) Run(ctx context.Context, app *cli.App) error {
	return app.SetSecrets(ctx, c.ID, c.Values)
}

type waitCommand struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
}

func (c *waitCommand) Run(ctx context.Context, app *cli.App) error { return app.WaitFor(ctx, c.IDs) }

type updateCommand struct {
	ID       string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID."`
	CPUs     int    `name:"cpus" help:"Cores for each of its containers."`
	Priority *int   `help:"Of a waiting job: what is added to its priority. Only operators may raise it."`
	Mem      int    `placeholder:"GIB" help:"Memory for each of its containers, GiB, without its tmpfs."`
}

func (c *updateCommand) Run(ctx context.Context, app *cli.App) error {
	if c.Priority == nil {
		return app.Resize(ctx, c.ID, c.CPUs, c.Mem)
	}
	return app.Reprioritize(ctx, c.ID, *c.Priority, c.CPUs+c.Mem > 0)
}

func main() {
	cli.Main(cli.Program{
		Name:  "gqueue",
		About: "Show the queue, or everything about one job.",
		Examples: []string{
			"gqueue                             # jobs that wait or run",
			"gqueue --me -t all                 # all of yours, ended ones too",
			"gqueue -h -o '%i|%j|%T' -A vision  # for scripts; or --json",
			"gqueue show 12                     # one job: spec, allocation, tries, timeline",
			"gqueue update 12 --cpus 8 --mem 64 # more, or less, for a job that runs",
			"gqueue --priority -S -priority     # who is next, and by which points",
			"gqueue --watch -A vision           # live",
			"gqueue explain 13                  # why does it wait?",
		},
	}, &command{})
}
