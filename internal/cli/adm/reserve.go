package adm

import (
	"context"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/reserved"
	"gbatch/internal/units"
)

// Reservations is gadm reservations.
type Reservations struct{}

// Run lists the advance reservations.
func (Reservations) Run(ctx context.Context, a *cli.App) error { return reserved.List(ctx, a, false) }

// Reserve is gadm reserve.
type Reserve struct {
	Name        string        `arg:"" help:"Its name, which jobs give by --reservation, or its UUID in reservationIds."`
	From        string        `default:"now" help:"Start: 2026-03-01T18:00, 18:00, tomorrow, now, or +2h."`
	Until       string        `help:"End, in the same form."`
	For         time.Duration `help:"Length instead of an end, as 90m or 3d."`
	Every       string        `placeholder:"WHEN" help:"It comes again each hour, day, weekday, weekend, week or month, on days as mon,thu, or by a table as '0 18 * * 1-5'."`
	Last        string        `placeholder:"DATE" help:"With --every: the last day on which it begins."`
	Zone        string        `help:"With --every: whose clock it goes by, as Europe/Brussels. Default: yours."`
	Nodes       []string      `sep:"none" xor:"which,in" help:"These nodes, as gpu[01-04]."`
	Partition   string        `xor:"in" placeholder:"NAME" help:"The nodes that are in this partition now; with --count so many of them."`
	Count       int           `xor:"which" help:"So many nodes; which ones is chosen now."`
	GPUs        int           `name:"gpus" xor:"gpu" placeholder:"N" help:"Only so many GPUs of each node; which ones is chosen now."`
	GPU         []string      `name:"gpu" xor:"gpu" placeholder:"INDEX|UUID" help:"Only these GPUs of the one node."`
	GPUModel    []string      `name:"gpu-model" help:"With --count or --gpus: of these models."`
	Cluster     int           `short:"p" help:"With --count: of this cluster."`
	Project     []string      `short:"A" help:"For jobs of these projects."`
	User        []string      `short:"u" help:"For jobs of these users."`
	Maintenance bool          `help:"For nobody."`
	Reason      string        `short:"r" help:"Why."`
}

// Run makes a reservation.
func (o *Reserve) Run(ctx context.Context, a *cli.App) error {
	r := api.Reservation{
		Name: o.Name, Partition: o.Partition, Count: o.Count, GPUs: o.GPU, GPUsPerNode: o.GPUs, GPUModels: o.GPUModel, Cluster: o.Cluster,
		Projects: o.Project, Users: o.User, Maintenance: o.Maintenance, Reason: o.Reason,
	}
	zone, err := o.zone(a)
	if err != nil {
		return err
	}
	if r.Start, err = units.ParseComing(o.From, a.Now(), zone); err != nil {
		return exit.Usagef("--from: %w", err)
	}
	if r.Every, err = o.every(&r.Start, zone); err != nil {
		return err
	}
	switch {
	case (o.Until == "") == (o.For == 0):
		return exit.Usagef("say when it ends: either --until or --for")
	case o.For > 0:
		r.End = r.Start.Add(o.For)
	default:
		if r.End, err = units.ParseComing(o.Until, a.Now(), zone); err != nil {
			return exit.Usagef("--until: %w", err)
		}
		if !r.End.After(r.Start) && len(o.Until) <= len("06:00") && strings.Contains(o.Until, ":") { // of the day after
			r.End = r.End.AddDate(0, 0, 1)
		}
	}
	if r.Nodes, err = jobs.ParseNodes(o.Nodes); err != nil {
		return err
	}
	made, err := a.Client.Reserve(ctx, r)
	if done, err := a.Answered(made, err); done {
		return err
	}
	a.SayUnknown(a.Unknown(ctx, r.Users))
	a.SayAbsent(ctx, cli.Filters{Projects: r.Projects})
	more := ""
	if made.Every != nil {
		more = ", again " + reserved.Again(made.Every)
	}
	err = a.Tell("reservation %s of %s from %s until %s%s", r.Name, reserved.What(*made), made.Start.In(zone).Format(time.RFC3339), made.End.In(zone).Format(time.RFC3339), more)
	if !r.Maintenance && err == nil {
		err = a.Tell("jobs use it with \"reservationIds\": [\"%s\"]", made.UUID)
	}
	return err
}

// Unreserve is gadm unreserve.
type Unreserve struct {
	Names []string `arg:"" help:"Reservations."`
	Skip  bool     `help:"Of those that come again only the time that is, or comes next."`
}

// Run removes reservations, or a time of them.
func (o *Unreserve) Run(ctx context.Context, a *cli.App) error {
	done := "reservation %s removed\n"
	if o.Skip {
		done = "reservation %s skips one time\n"
	}
	return each(a, o.Names, done, func(n string) error { return a.Client.Unreserve(ctx, n, o.Skip) })
}
