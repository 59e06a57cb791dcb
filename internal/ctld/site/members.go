package site

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// Members is a list of people: users, and whole unix groups.
type Members []Member

// Member is a user by name, written as such, or a unix group, written
// {group: NAME}. One of both is set.
type Member struct{ User, Group string }

// UnmarshalYAML reads one member.
func (m *Member) UnmarshalYAML(decode func(any) error) error {
	if err := decode(&m.User); err == nil {
		return nil
	}
	var g struct {
		Group string `yaml:"group"`
	}
	if err := decode(&g); err != nil || g.Group == "" {
		return errors.New("a member is a user's name, or a unix group as {group: NAME}")
	}
	m.Group = g.Group
	return nil
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

// fault is one problem of a configuration.
type fault struct {
	path string // as projects[0].name
	text string
}

func (f *fault) Error() string { return f.path + ": " + f.text }

// withLines puts before each fault the line of the file that it is about.
func withLines(data []byte, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	file, perr := parser.ParseBytes(data, 0)
	if !ok || perr != nil {
		return err
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		if f, ok := errors.AsType[*fault](e); ok {
			// The nearest that is written: a value may be a default.
			for at := f.path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
				p, err := yaml.PathString("$." + at)
				if err != nil {
					break
				}
				if node, err := p.FilterFile(file); err == nil && node != nil {
					e = fmt.Errorf("line %d: %w", node.GetToken().Position.Line, f)
					break
				}
			}
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
