package site

import (
	"fmt"
	"maps"
	"slices"
)

// Named are users and groups at one place of the file.
type Named struct {
	Path          string
	Users, Groups []string
}

// People are all users and groups that the configuration names, by place.
func (c Config) People() []Named {
	var out []Named
	add := func(path string, l Members) {
		users, groups := l.split()
		out = append(out, Named{path, users, groups})
	}
	add("admins", c.Admins)
	add("operators", c.Operators)
	add("metrics.scrapers", c.Metrics.Scrapers)
	for i, p := range c.Projects {
		if !p.Stored {
			out = append(out, p.People(fmt.Sprintf("projects[%d]", i))...)
		}
	}
	for i, p := range c.Partitions {
		add(fmt.Sprintf("partitions[%d].users", i), p.Users)
		add(fmt.Sprintf("partitions[%d].notUsers", i), p.NotUsers)
	}
	return append(out, Named{Path: "limits.users", Users: slices.Sorted(maps.Keys(c.Limits.Users))},
		Named{Path: "policy.users", Users: slices.Sorted(maps.Keys(c.Policy.Users))})
}

// People are whom a project names.
func (p *Project) People(at string) []Named {
	users, groups := p.Members.split()
	return []Named{{at + ".members", users, groups}, {Path: at + ".userShares", Users: slices.Sorted(maps.Keys(p.UserShares))}}
}
