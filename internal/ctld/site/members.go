package site

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"gbatch/internal/document"
)

// Members is a list of people: users, and whole unix groups.
type Members []Member

// Member is a user by name, written as such, or a unix group, written
// {group: NAME}. One of both is set.
type Member struct{ User, Group string }

// ReadSetting reads one member.
func (m *Member) ReadSetting(d *document.Decoder, n *document.Node) {
	switch group := n.Given("group"); {
	case n.Kind != document.ObjectKind && n.Kind != document.ArrayKind:
		m.User = strings.Clone(n.Text)
	case group == nil || len(n.Kids) != 1 || group.Kind == document.ObjectKind || group.Kind == document.ArrayKind:
		d.Problem(n, "is no member", "write a user's name, or a unix group as {group: NAME}")
	default:
		m.Group = strings.Clone(group.Text)
	}
}

// MarshalYAML writes it in the same form.
func (m Member) MarshalYAML() (any, error) {
	if m.Group != "" {
		return map[string]string{"group": m.Group}, nil
	}
	return m.User, nil
}

func users(names ...string) Members {
	var out Members
	for _, n := range names {
		out = append(out, Member{User: n})
	}
	return out
}

func groups(names ...string) Members {
	var out Members
	for _, n := range names {
		out = append(out, Member{Group: n})
	}
	return out
}

// split gives users and groups apart.
func (l Members) split() (users, groups []string) {
	for _, m := range l {
		if m.Group != "" {
			groups = append(groups, m.Group)
		} else {
			users = append(users, m.User)
		}
	}
	return users, groups
}

// peopleRule is what a user or a group may be called; names of directory
// services have an @ or a backslash.
var peopleRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9 ._@$\\-]{0,127}$`)

func (l Members) check(path string, bad func(path, format string, a ...any)) {
	for i, m := range l {
		if name := cmp.Or(m.Group, m.User); !peopleRule.MatchString(name) {
			bad(fmt.Sprintf("%s[%d]", path, i), "%q is no name of a user or group", name)
		}
	}
}
