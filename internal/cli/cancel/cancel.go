// Package cancel is gcancel: it ends jobs, and steers those that shall not end.
package cancel

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/job"
)

// Cancel is gcancel and its flags: which jobs it acts on and how. Either IDs or
// filters.
type Cancel struct {
	IDs      []string `arg:"" optional:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
	Hold     bool     `xor:"action" help:"Do not cancel but put on hold."`
	UHold    bool     `name:"uhold" xor:"action" help:"As an operator: put on hold as its user would, who may release it; what only --hold was given for is let go by operators alone."`
	Release  bool     `xor:"action" help:"Do not cancel but release from hold."`
	Pause    bool     `xor:"action" help:"Do not cancel but make a running job stand still; it keeps its resources."`
	Resume   bool     `xor:"action" help:"Do not cancel but let a paused job go on."`
	Requeue  bool     `xor:"action" help:"End the present try only; the job waits again and begins anew."`
	Halt     bool     `xor:"action" help:"Let a restartable job save its work and end; a new job continues it."`
	Signal   string   `short:"s" xor:"action" placeholder:"NAME" help:"Only send the programs a signal, as USR1; they go on."`
	Users    []string `short:"u" name:"user" help:"All jobs of these users that have not ended."`
	Me       bool     `help:"All jobs of yours that have not ended."`
	Projects []string `short:"A" name:"project" help:"Only jobs of these projects."`
	States   []string `short:"t" help:"Only jobs in these states, as QUEUED."`
	Names    []string `short:"n" name:"name" help:"Only jobs with these names."`
	Places   []string `short:"p" name:"partition" aliases:"cluster" help:"Only jobs of these partitions, or clusters by their numbers."`
	Yes      bool     `short:"y" help:"Do not ask before touching more than 20 jobs."`
}

// Words takes arguments of which none is a flag.
func (o *Cancel) Words(ids []string) bool {
	o.IDs = ids
	return true
}

// action is what is done to the jobs.
func (o *Cancel) action() string {
	for _, f := range []struct {
		given  bool
		action string
	}{{o.Hold, "hold"}, {o.UHold, "uhold"}, {o.Release, "release"}, {o.Pause, "pause"}, {o.Resume, "resume"}, {o.Requeue, "requeue"}, {o.Halt, "halt"}, {o.Signal != "", "signal"}} {
		if f.given {
			return f.action
		}
	}
	return "cancel"
}

// askAbove is how many jobs a filter may hit on a terminal without a question.
const askAbove = 20

// Run cancels, holds or releases jobs and says what it did to each. It fails if
// one could not be done.
func (o *Cancel) Run(ctx context.Context, a *cli.App) error {
	requests, err := o.requests(ctx, a)
	if err != nil {
		return err
	}
	if len(o.IDs) == 0 && a.Term.In && !o.Yes {
		if ok, err := confirm(ctx, a, o.action(), requests); err != nil || !ok {
			return err
		}
	}
	all := api.ActionResponse{Results: []api.ActionResult{}}
	for _, req := range requests {
		req.Signal = o.Signal
		resp, err := a.Client.Action(ctx, o.action(), &req)
		if err != nil {
			return err
		}
		all.Results = append(all.Results, resp.Results...)
		all.Matched += resp.Matched
	}
	if all.Matched == 0 && len(o.IDs) == 0 {
		a.SayUnknown(a.Unknown(ctx, o.Users))
		a.SayAbsent(ctx, cli.Filters{Projects: o.Projects, Places: o.Places})
	}
	return Print(a, &all)
}

// requests turns filters with several values into requests with one
// each.
func (o *Cancel) requests(ctx context.Context, a *cli.App) ([]api.ActionRequest, error) {
	states, err := jobs.ParseStates(o.States)
	if err != nil {
		return nil, err
	}
	users, err := a.Users(ctx, o.Users, o.Me)
	if err != nil {
		return nil, err
	}
	filtered := len(users)+len(o.Projects)+len(states)+len(o.Names)+len(o.Places) > 0
	switch {
	case len(o.IDs) > 0 && filtered:
		return nil, exit.Usagef("name either jobs or filters (-u, --me, -A, -t, -n, -p), not both")
	case len(o.IDs) > 0:
		return []api.ActionRequest{{IDs: o.IDs}}, nil
	case !filtered:
		return nil, exit.Usagef("name the jobs, or give a filter: -u, --me, -A, -t, -n or -p")
	}
	var out []api.ActionRequest
	for _, user := range orAny(users) {
		for _, project := range orAny(o.Projects) {
			for _, name := range orAny(o.Names) {
				for _, state := range orAny(states) {
					for _, place := range orAny(o.Places) {
						r := api.ActionRequest{User: user, Project: project, Name: name, State: string(state)}
						var err error
						if r.Cluster, err = strconv.Atoi(place); err != nil {
							r.Partition = place
						}
						out = append(out, r)
					}
				}
			}
		}
	}
	return out, nil
}

func orAny[T ~string](values []T) []T {
	if len(values) == 0 {
		return make([]T, 1)
	}
	return values
}

// confirm asks the user before many jobs are touched.
func confirm(ctx context.Context, a *cli.App, action string, requests []api.ActionRequest) (bool, error) {
	total := 0
	for _, req := range requests {
		req.Count = true
		resp, err := a.Client.Action(ctx, action, &req)
		if err != nil {
			return false, err
		}
		total += resp.Matched
	}
	if total <= askAbove {
		return true, nil
	}
	ok, err := a.Ask(fmt.Sprintf("%s %d jobs?", action, total))
	if err == nil && !ok {
		a.Say("nothing was done")
	}
	return ok, err
}

// Print says what was done to each job, and fails if one could not be done.
func Print(a *cli.App, r *api.ActionResponse) error {
	if a.Output.JSON {
		if err := a.WriteJSON(r); err != nil {
			return err
		}
	}
	code := exit.OK
	for _, res := range r.Results {
		switch {
		case res.Error != nil:
			a.Say("%s: %v", res.ID, res.Error)
			if c := exit.OfCode(res.Error.Code); code == exit.OK || c == exit.Denied {
				code = c
			}
		case a.Output.JSON:
		case a.Output.IDs:
			fmt.Fprintln(a.Out, actionID(&res))
		default:
			if err := a.Tell("%s", actionText(&res)); err != nil {
				return err
			}
		}
	}
	if len(r.Results) == 0 && !a.Output.JSON && !a.Output.IDs {
		a.Say("no job matches")
	}
	if code != exit.OK {
		return &exit.Error{Code: code}
	}
	return nil
}

// actionID names tasks as they were asked for, and other jobs by number.
func actionID(r *api.ActionResult) string {
	if strings.Contains(r.ID, "_") {
		return r.ID
	}
	return fmt.Sprint(r.Number)
}

// actionText is what was done to one job.
func actionText(r *api.ActionResult) string {
	text := fmt.Sprintf("job %s: ", actionID(r))
	switch {
	case r.Message != "":
		return text + r.Message
	case r.Before == r.After && r.After.Final():
		return text + "already " + string(r.After)
	case r.Before == r.After:
		return text + "stays " + string(r.After)
	case r.After == job.Cancelled:
		return text + "cancelled, was " + string(r.Before)
	}
	return text + string(r.Before) + " -> " + string(r.After)
}
