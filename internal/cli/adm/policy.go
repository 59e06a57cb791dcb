package adm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/units"
)

// ShowPolicy is gadm policy show.
type ShowPolicy struct{}

// Run prints the rules in force.
func (ShowPolicy) Run(ctx context.Context, a *cli.App) error {
	p, err := a.Client.Policy(ctx)
	if done, err := a.Answered(p, err); done {
		return err
	}
	fmt.Fprint(a.Out, human.CleanLines(p.Text))
	return nil
}

// CheckPolicy is gadm policy check.
type CheckPolicy struct{}

// Run says what a reload would do.
func (CheckPolicy) Run(ctx context.Context, a *cli.App) error { return loadPolicy(ctx, a, true) }

// ReloadPolicy is gadm policy reload.
type ReloadPolicy struct{}

// Run has the controller take the rules as its file has them now.
func (ReloadPolicy) Run(ctx context.Context, a *cli.App) error { return loadPolicy(ctx, a, false) }

// loadPolicy has the controller read its file again; check only says what that
// would do.
func loadPolicy(ctx context.Context, a *cli.App, check bool) error {
	do, done := a.Client.ReloadPolicy, "the rules are in force"
	if check {
		do, done = a.Client.CheckPolicy, "the file is fine"
	}
	p, err := do(ctx)
	if done, err := a.Answered(p, err); done {
		return err
	}
	for _, line := range p.Changes {
		fmt.Fprintln(a.Out, human.Clean(line))
	}
	for _, w := range p.Warnings {
		a.Say("note: %s", human.Clean(w))
	}
	if len(p.Changes) == 0 {
		done += "; nothing changes"
	}
	a.Say("%s", done)
	return nil
}

// Audit is gadm audit.
type Audit struct {
	User   string `short:"u" help:"Only what this user did."`
	Object string `help:"Only what was done to this: a node, a project, a job's number, a token."`
	Since  string `placeholder:"TIME" help:"Only since then: 2026-03-01T18:00, today, or how long ago as 24h or 7d."`
	Limit  int    `short:"n" default:"100" help:"The last so many, at most 10000."`
}

// Run prints the audit log, oldest of what is asked first.
func (o *Audit) Run(ctx context.Context, a *cli.App) error {
	if o.Limit < 1 || o.Limit > 10000 {
		return exit.Usagef("-n is %d: want 1 to 10000", o.Limit)
	}
	f := client.AuditFilter{User: o.User, Object: o.Object, Limit: o.Limit}
	if o.Since != "" {
		var err error
		if f.Since, err = units.ParsePast(o.Since, a.Now(), time.Local); err != nil {
			return exit.Usagef("--since: %w", err)
		}
	}
	l, err := a.Client.Audit(ctx, f)
	if err != nil {
		return err
	}
	if len(l.Entries) == 0 && o.User != "" {
		a.SayUnknown(a.Unknown(ctx, []string{o.User}))
	}
	slices.Reverse(l.Entries)
	if a.Output.JSON {
		return a.WriteJSON(l)
	}
	t := table.New("TIME", "USER", "FROM", "VIA", "ACTION", "OBJECT", "CHANGE", "RESULT")
	for _, e := range l.Entries {
		if e.Count > 1 {
			e.Result += fmt.Sprintf(" (%d times)", e.Count)
		}
		t.Row(e.Time.Format(time.RFC3339), e.User, e.From, e.Via, e.Action, e.Object, e.Change, e.Result)
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}
