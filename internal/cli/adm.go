package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
)

// DrainOptions say what to take out of scheduling, or put back.
type DrainOptions struct {
	Nodes  []string // hostlists, as gpu[01-04]
	GPU    string   // index or UUID; empty: the whole node
	Reason string
}

// Drain takes nodes out of scheduling; what runs on them goes on.
func (a *App) Drain(ctx context.Context, o DrainOptions) error {
	return a.eachNode(o, "drained", func(node string) error {
		return a.Client.Drain(ctx, node, api.DrainRequest{GPU: o.GPU, Reason: o.Reason})
	})
}

// Resume puts nodes back.
func (a *App) Resume(ctx context.Context, o DrainOptions) error {
	return a.eachNode(o, "resumed", func(node string) error {
		return a.Client.Resume(ctx, node, api.DrainRequest{GPU: o.GPU})
	})
}

// Forget drops nodes that are gone for good.
func (a *App) Forget(ctx context.Context, nodes []string) error {
	return a.eachNode(DrainOptions{Nodes: nodes}, "forgotten", func(node string) error { return a.Client.Forget(ctx, node) })
}

func (a *App) eachNode(o DrainOptions, done string, do func(string) error) error {
	var nodes []string
	for _, list := range o.Nodes {
		names, err := expandHosts(list)
		if err != nil {
			return usageError("%w", err)
		}
		nodes = append(nodes, names...)
	}
	what := ""
	if o.GPU != "" {
		what = "GPU " + o.GPU + " of "
	}
	var errs []error
	for _, n := range nodes {
		if err := do(n); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.Out, "%s%s %s\n", what, n, done)
	}
	return errors.Join(errs...)
}

// Reservations lists the advance reservations.
func (a *App) Reservations(ctx context.Context) error {
	l, err := a.Client.Reservations(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(l)
	}
	t := newTable("NAME", "UUID", "FROM", "UNTIL", "NODES", "FOR", "REASON")
	for _, r := range l.Reservations {
		t.AppendRow(toRow([]string{
			r.Name, r.UUID, r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339), reservedWhat(r), reservedFor(r), r.Reason,
		}))
	}
	return render(a.Out, t, "")
}

// reservedWhat is the nodes, and how many GPUs of them where it is not all.
func reservedWhat(r api.Reservation) string {
	out := compressHosts(r.Nodes)
	switch n := len(r.GPUs); n {
	case 0:
		return out
	case 1:
		return out + " (1 GPU)"
	default:
		return fmt.Sprintf("%s (%d GPUs)", out, n)
	}
}

func reservedFor(r api.Reservation) string {
	if r.Maintenance {
		return "nobody (maintenance)"
	}
	var who []string
	for _, p := range r.Projects {
		who = append(who, "project "+p)
	}
	for _, u := range r.Users {
		who = append(who, "user "+u)
	}
	who = append(who, "jobs that name it")
	return strings.Join(who, ", ")
}

// ReserveOptions describe a reservation. From and Until are RFC 3339, "now",
// or a time from now as "+2h"; For is instead of Until.
type ReserveOptions struct {
	api.Reservation
	From, Until string
	For         time.Duration
}

// Reserve makes a reservation.
func (a *App) Reserve(ctx context.Context, o ReserveOptions) error {
	r := o.Reservation
	var err error
	if r.Start, err = a.parseMoment(o.From); err != nil {
		return usageError("--from: %w", err)
	}
	switch {
	case (o.Until == "") == (o.For == 0):
		return usageError("say when it ends: either --until or --for")
	case o.For > 0:
		r.End = r.Start.Add(o.For)
	default:
		if r.End, err = a.parseMoment(o.Until); err != nil {
			return usageError("--until: %w", err)
		}
	}
	var nodes []string
	for _, list := range r.Nodes {
		names, err := expandHosts(list)
		if err != nil {
			return usageError("--nodes: %w", err)
		}
		nodes = append(nodes, names...)
	}
	r.Nodes = nodes
	made, err := a.Client.Reserve(ctx, r)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(made)
	}
	fmt.Fprintf(a.Out, "reservation %s of %s from %s until %s\n", r.Name, reservedWhat(*made), r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339))
	if !r.Maintenance {
		fmt.Fprintf(a.Out, "jobs use it with \"reservationIds\": [\"%s\"]\n", made.UUID)
	}
	return nil
}

func (a *App) parseMoment(text string) (time.Time, error) {
	if text == "now" {
		return a.Now(), nil
	}
	if after, ok := strings.CutPrefix(text, "+"); ok {
		d, err := time.ParseDuration(after)
		return a.Now().Add(d), err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q: want 2026-03-01T18:00:00Z, now, or a time from now as +2h30m", text)
	}
	return t, nil
}

// Unreserve removes reservations.
func (a *App) Unreserve(ctx context.Context, names []string) error {
	return a.allOf(names, "reservation %s removed\n", func(n string) error { return a.Client.Unreserve(ctx, n) })
}
