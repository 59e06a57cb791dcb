package ctld

import (
	"context"
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/state"
	"gbatch/sched"
)

type sharesInput struct{}

// shares is the share tree with all its terms: to operators whole, to others
// what is about their projects, themselves, and those above them.
func (s *Server) shares(ctx context.Context, _ *sharesInput) (*body[api.ShareList], error) {
	id := caller(ctx)
	var terms []accounting.Term
	if err := s.loop.ask(ctx, func(c *control.Controller, now sched.Time) { terms = c.Terms(now) }); err != nil {
		return nil, s.fail(err)
	}
	seen := s.seesProjects(id, terms)
	out := api.ShareList{Shares: []api.Share{}}
	for _, t := range terms {
		if t.User != "" && s.mayTouch(id, &state.Owner{User: t.User, Project: t.Account}) || t.User == "" && seen[t.Account] {
			out.Shares = append(out.Shares, shareToAPI(t))
		}
	}
	return &body[api.ShareList]{out}, nil
}

// seesProjects are the projects whose own line the caller may see: theirs,
// those that everyone may use, and those above one.
func (s *Server) seesProjects(id identity, terms []accounting.Term) map[string]bool {
	up, out := map[string]string{}, map[string]bool{}
	for _, t := range terms {
		if t.User == "" {
			up[t.Account] = t.Parent
		}
	}
	for name := range up { // a set: order does not matter
		p, ok := s.cfg().project(name)
		if !id.operator() && (!ok || len(p.Members) > 0 && !s.auth.people.among(p.Members, id.user)) {
			continue
		}
		for at := name; at != "" && !out[at]; at = up[at] {
			out[at] = true
		}
	}
	return out
}

func shareToAPI(t accounting.Term) api.Share {
	const scale = float64(accounting.Scale)
	out := api.Share{
		Project: t.Account, User: t.User, Parent: t.Parent, Depth: t.Depth, Shares: t.Shares,
		NormShares: float64(t.NormShares) / scale, NormUsage: float64(t.NormUsage) / scale, UsageHours: billedHours(t.Usage),
		LevelFS: float64(t.LevelFS) / scale, FairShare: float64(t.Factor) / scale, Rank: t.Rank,
		TotalHours: billedHours(t.Total.Billed), MonthHours: billedHours(t.Month),
	}
	if t.LevelFS == accounting.Unused {
		out.LevelFS = -1
	}
	if t.Budget > 0 && t.User == "" {
		out.Budget = &api.Budget{Hours: float64(t.Budget) / 60, Used: out.TotalHours, Monthly: t.Monthly}
		if t.Monthly {
			out.Budget.Used = out.MonthHours
		}
	}
	return out
}

// warnBudget is the part of a budget, in percent, from which a submission is
// told that it will be used up.
const warnBudget = 80

// budgetNote tells a submitter whose project's budget is nearly or all used.
func budgetNote(b *accounting.Budget) []api.Note {
	if b == nil || b.Percent() < warnBudget {
		return nil
	}
	period := "budget"
	if b.Monthly {
		period = "month's budget"
	}
	text := fmt.Sprintf("project %s has used %d %% of its %s: %s of %s GPU-hours", b.Account, b.Percent(), period, hours(b.UsedMinutes), hours(b.MaxMinutes))
	if b.UsedMinutes >= b.MaxMinutes {
		text += "; its jobs wait in the queue until there is more"
	}
	return []api.Note{{Message: text}}
}

func hours(minutes int64) string { return fmt.Sprintf("%.1f", float64(minutes)/60) }
