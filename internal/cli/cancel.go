package cli

import (
	"context"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// CancelOptions are which jobs gcancel acts on and how. Either IDs or filters.
type CancelOptions struct {
	IDs      []string
	Action   string // cancel, hold, release, pause, resume, requeue, halt, signal
	Signal   string // with signal
	Me       bool
	Users    []string
	Projects []string
	States   []string
	Names    []string
	Clusters []int
	Yes      bool // do not ask
}

// askAbove is how many jobs a filter may hit on a terminal without a question.
const askAbove = 20

// Cancel cancels, holds or releases jobs and says what it did to each. It
// fails if one could not be done.
func (a *App) Cancel(ctx context.Context, o CancelOptions) error {
	requests, err := a.cancelRequests(ctx, o)
	if err != nil {
		return err
	}
	if len(o.IDs) == 0 && a.Term.In && !o.Yes {
		if ok, err := a.confirm(ctx, o.Action, requests); err != nil || !ok {
			return err
		}
	}
	all := api.ActionResponse{Results: []api.ActionResult{}}
	for _, req := range requests {
		req.Signal = o.Signal
		resp, err := a.Client.Action(ctx, o.Action, &req)
		if err != nil {
			return err
		}
		all.Results = append(all.Results, resp.Results...)
		all.Matched += resp.Matched
	}
	return a.printActions(&all, o)
}

// cancelRequests turns filters with several values into requests with one
// each.
func (a *App) cancelRequests(ctx context.Context, o CancelOptions) ([]api.ActionRequest, error) {
	states, err := parseStates(o.States)
	if err != nil {
		return nil, err
	}
	if o.Me {
		me, err := a.me(ctx)
		if err != nil {
			return nil, err
		}
		o.Users = append(o.Users, me)
	}
	filtered := len(o.Users)+len(o.Projects)+len(states)+len(o.Names)+len(o.Clusters) > 0
	switch {
	case len(o.IDs) > 0 && filtered:
		return nil, usageError("name either jobs or filters (-u, --me, -A, -t, -n, -p), not both")
	case len(o.IDs) > 0:
		return []api.ActionRequest{{IDs: o.IDs}}, nil
	case !filtered:
		return nil, usageError("name the jobs, or give a filter: -u, --me, -A, -t, -n or -p")
	}
	var out []api.ActionRequest
	for _, user := range orAny(o.Users) {
		for _, project := range orAny(o.Projects) {
			for _, name := range orAny(o.Names) {
				for _, state := range orAny(states) {
					for _, cluster := range orAny(o.Clusters) {
						out = append(out, api.ActionRequest{User: user, Project: project, Name: name, State: string(state), Cluster: cluster})
					}
				}
			}
		}
	}
	return out, nil
}

func orAny[T ~string | ~int](values []T) []T {
	if len(values) == 0 {
		return make([]T, 1)
	}
	return values
}

// confirm asks the user before many jobs are touched.
func (a *App) confirm(ctx context.Context, action string, requests []api.ActionRequest) (bool, error) {
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
	ok, err := a.ask(fmt.Sprintf("%s %d jobs?", action, total))
	if err == nil && !ok {
		a.say("nothing was done")
	}
	return ok, err
}

func (a *App) printActions(r *api.ActionResponse, o CancelOptions) error {
	if a.Output.JSON {
		if err := a.writeJSON(r); err != nil {
			return err
		}
	}
	code := ExitOK
	for _, res := range r.Results {
		switch {
		case res.Error != nil:
			a.say("%s: %v", res.ID, res.Error)
			if c := codeExit(res.Error.Code); code == ExitOK || c == ExitDenied {
				code = c
			}
		case a.Output.JSON:
		case a.Output.IDs:
			fmt.Fprintln(a.Out, actionID(&res))
		default:
			fmt.Fprintln(a.Out, clean(actionText(&res)))
		}
	}
	if len(r.Results) == 0 && !a.Output.JSON && !a.Output.IDs {
		a.say("no job matches")
	}
	if code != ExitOK {
		return &exitError{code: code}
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
