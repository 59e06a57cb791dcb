package site

import (
	"slices"

	"gbatch/internal/api"
)

// ProjectFromAPI is a project that gadm made.
func ProjectFromAPI(p api.Project) Project {
	return Project{
		Name: p.Name, GID: p.GID, Members: slices.Concat(users(p.Members...), groups(p.Groups...)), Shares: p.Shares, Clusters: p.Clusters,
		Limits: p.Limits,
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged,
		Capabilities: p.Capabilities, HostNetwork: p.HostNetwork, Runtime: p.Runtime, Logs: p.Logs, Stored: true,
	}
}

// ProjectToAPI is a project as the API has it.
func ProjectToAPI(p Project) api.Project {
	out := api.Project{
		Name: p.Name, GID: p.GID, Shares: p.Shares, Clusters: p.Clusters,
		Limits: p.Limits,
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged,
		Capabilities: p.Capabilities, HostNetwork: p.HostNetwork, Runtime: p.Runtime, Logs: p.Logs, File: !p.Stored,
	}
	out.Members, out.Groups = p.Members.split()
	return out
}
