package cli

import (
	"context"
	"slices"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
)

// Filters are the names by which a list was chosen, beside users.
type Filters struct {
	Projects, QOS []string
	Places        []string // partitions, or clusters by their numbers
	Nodes         []string
}

// SayAbsent says which of the names the site does not have. It is for lists that
// came out empty: what has ended may be of a project that is gone. Where the
// controller does not answer it says nothing.
func (a *App) SayAbsent(ctx context.Context, f Filters) {
	if len(f.Projects) > 0 {
		if s, err := a.Client.Status(ctx); err == nil {
			a.sayAbsent("project", f.Projects, s.Projects)
		}
	}
	if len(f.QOS) > 0 {
		if s, err := a.Client.Site(ctx); err == nil {
			a.sayAbsent("QOS", f.QOS, namesOf(s.QOS, func(q api.SiteQOS) string { return q.Name }))
		}
	}
	if len(f.Places) == 0 && len(f.Nodes) == 0 {
		return
	}
	if c, err := a.Client.Cluster(ctx); err == nil {
		a.sayAbsent("node", f.Nodes, namesOf(c.Nodes, func(n api.Node) string { return n.Name }))
		places := namesOf(c.Partitions, func(p api.Partition) string { return p.Name })
		clusters := namesOf(c.Nodes, func(n api.Node) string { return strconv.Itoa(n.Cluster) })
		for _, p := range f.Places {
			if _, err := strconv.Atoi(p); err == nil {
				a.sayAbsent("cluster", []string{p}, clusters)
			} else {
				a.sayAbsent("partition", []string{p}, places)
			}
		}
	}
}

func namesOf[T any](list []T, name func(T) string) (out []string) {
	for _, v := range list {
		out = append(out, name(v))
	}
	return out
}

func (a *App) sayAbsent(kind string, asked, there []string) {
	for _, name := range asked {
		if !slices.Contains(there, name) {
			a.Say("this site has no %s %s", kind, human.Clean(name))
		}
	}
}
