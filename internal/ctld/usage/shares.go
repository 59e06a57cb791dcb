package usage

import (
	"context"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
	"gbatch/sched"
)

type sharesInput struct{}

// Shares is the share tree with all its terms: to operators whole, to others
// what is about their projects, themselves, and those above them.
func (s *History) Shares(ctx context.Context, _ *sharesInput) (*api.ShareList, error) {
	id := access.Caller(ctx)
	var terms []accounting.Term
	if err := s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) { terms = c.Terms(now) }); err != nil {
		return nil, err
	}
	seen := s.seesProjects(id, terms)
	out := api.ShareList{Shares: []api.Share{}}
	for _, t := range terms {
		if t.User != "" && s.Rights.MayTouch(id, &state.Owner{User: t.User, Project: t.Account}) || t.User == "" && seen[t.Account] {
			out.Shares = append(out.Shares, shareToAPI(t))
		}
	}
	return &out, nil
}

// seesProjects are the projects whose own line the caller may see: theirs,
// those that everyone may use, and those above one.
func (s *History) seesProjects(id access.Identity, terms []accounting.Term) map[string]bool {
	up, out := map[string]string{}, map[string]bool{}
	for _, t := range terms {
		if t.User == "" {
			up[t.Account] = t.Parent
		}
	}
	for name := range up { // a set: order does not matter
		if !s.Rights.SeesProject(id, name) {
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
		NormShares: float64(t.NormShares) / scale, NormUsage: float64(t.NormUsage) / scale, UsageHours: wire.BilledHours(t.Usage),
		LevelFS: float64(t.LevelFS) / scale, FairShare: float64(t.Factor) / scale, Rank: t.Rank,
		TotalHours: wire.BilledHours(t.Total.Billed), MonthHours: wire.BilledHours(t.Month),
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
