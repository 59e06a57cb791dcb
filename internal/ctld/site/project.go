package site

import (
	"gbatch/internal/api"
	"slices"
)

func ProjectFromAPI(p api.Project) Project {
	return Project{
		Name: p.Name, GID: p.GID, Members: slices.Concat(users(p.Members...), groups(p.Groups...)), Shares: p.Shares, Clusters: p.Clusters,
		Limits: p.Limits,
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged, Stored: true,
	}
}

func ProjectToAPI(p Project) api.Project {
	out := api.Project{
		Name: p.Name, GID: p.GID, Shares: p.Shares, Clusters: p.Clusters,
		Limits: p.Limits,
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged, File: !p.Stored,
	}
	out.Members, out.Groups = p.Members.split()
	return out
}
