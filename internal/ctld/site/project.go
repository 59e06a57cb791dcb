package site

import (
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/units"
)

// Project is one project: who is billed.
type Project struct {
	Name     string            `yaml:"name"`
	GID      int               `yaml:"gid,omitempty"`      // group of its storage
	Members  Members           `yaml:"members,omitempty"`  // empty: everyone
	Shares   int64             `yaml:"shares,omitempty"`   // of the cluster, relative to the other projects of the same parent; 0: 1
	Clusters []int             `yaml:"clusters,omitempty"` // that its jobs may use; empty: all
	Limits   api.ProjectLimits `yaml:"limits,omitempty"`   // instead of policy.perProject

	Privileged   bool             `yaml:"privileged,omitempty"`   // its jobs may be root on nodes that allow it too
	Capabilities []job.Capability `yaml:"capabilities,omitempty"` // that its jobs may ask for on nodes that allow it too
	HostNetwork  bool             `yaml:"hostNetwork,omitempty"`  // its jobs may use the network of nodes that allow it too
	Runtime      string           `yaml:"runtime,omitempty"`      // that runs all its jobs, on nodes that have it; empty: what each asks for

	Parent     string           `yaml:"parent,omitempty"`     // another project: its share is divided among those below it and its own users
	UserShares map[string]int64 `yaml:"userShares,omitempty"` // of the project, by user; 1 for those that are not named
	Budget     int64            `yaml:"budget,omitempty"`     // GPU-minutes, as billed, that it and those below it may use; 0: no bound

	BudgetPeriod string `yaml:"budgetPeriod,omitempty"` // month: the budget is for each calendar month (UTC); empty: in all

	Logs string `yaml:"logs,omitempty"` // where those of its jobs are kept; empty: as logs.keep says

	Stored bool `yaml:"-"` // by gadm, while the controller ran; else it is in the file
}

// Project is a project by its name.
func (c Config) Project(name string) (Project, bool) {
	i := slices.IndexFunc(c.Projects, func(p Project) bool { return p.Name == name })
	if i < 0 {
		return Project{}, false
	}
	return c.Projects[i], true
}

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

func (c Config) checkProjects(bad func(path, format string, a ...any)) {
	seen := map[string]bool{}
	for i, p := range c.Projects {
		at := fmt.Sprintf("projects[%d]", i)
		switch {
		case !NameRule.MatchString(p.Name):
			bad(at+".name", "%q: use letters, digits, '.', '_' and '-', at most 64", p.Name)
		case seen[p.Name]:
			bad(at+".name", "%q is there twice", p.Name)
		}
		seen[p.Name] = true
		if p.GID < 0 || p.GID > units.MaxID {
			bad(at+".gid", "%d: groups are numbered from 1 to %d", p.GID, uint32(units.MaxID))
		} else if uint32(p.GID) >= c.IDsFrom && p.GID < node.IDsEnd {
			bad(at+".gid", "%d: lies among the numbers that containers are given, from idsFrom on", p.GID)
		}
		if p.Shares < 0 {
			bad(at+".shares", "%d: must not be negative", p.Shares)
		}
		if p.BudgetPeriod != "" && p.BudgetPeriod != api.BudgetMonth {
			bad(at+".budgetPeriod", "%q: use month, or leave it out for a budget in all", p.BudgetPeriod)
		}
		for _, c := range p.Capabilities {
			if wrong := job.CheckCapability(string(c)); wrong != "" {
				bad(at+".capabilities", "%s", wrong)
			}
		}
		if p.Runtime != "" {
			if wrong := job.CheckRuntime(p.Runtime); wrong != "" {
				bad(at+".runtime", "%s", wrong)
			}
		}
		for _, n := range p.Clusters {
			if n < 1 {
				bad(at+".clusters", "%d: clusters are numbered from 1", n)
			}
		}
		if l := p.Limits; l.Running < 0 || l.Queued < 0 || l.GPUs < 0 || l.GPUMinutes < 0 {
			bad(at+".limits", "must not be negative")
		}
		if p.Logs != "" {
			c.Logs.checkPlace(at+".logs", p.Logs, bad)
		}
		p.Members.check(at+".members", bad)
	}
	if c.DefaultProject != "" && !seen[c.DefaultProject] {
		bad("defaultProject", "%q is not among the projects", c.DefaultProject)
	}
}
