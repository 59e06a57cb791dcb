package reason

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Place is a directory of the node, and what users know it as.
type Place struct {
	Path string // with {project} and {user} in it where these stand for any name
	Name string
	Same bool // what lies below it users know by the same path below Name
}

// Places are the directories that no text for users may name. Where a text comes
// from does not matter: libraries quote paths in their errors.
type Places struct{ list []hidden }

type hidden struct {
	Place
	fixed   string // what a text has that names it
	pattern *regexp.Regexp
}

// one is one name in a path, rest what may follow a path in a text.
const (
	one  = `[^/\s:;,"'()]+`
	rest = `[^\s:;,"'()]*`
)

// NewPlaces compiles a list. Of two that fit the longer is meant.
func NewPlaces(list []Place) *Places {
	p := &Places{}
	for _, at := range list {
		at.Path = strings.TrimRight(at.Path, "/")
		if at.Path == "" {
			continue // the whole machine has no other name
		}
		fixed, _, _ := strings.Cut(at.Path, "{")
		path := regexp.QuoteMeta(at.Path)
		for _, name := range []string{"{project}", "{user}"} {
			path = strings.ReplaceAll(path, regexp.QuoteMeta(name), one)
		}
		p.list = append(p.list, hidden{at, fixed, regexp.MustCompile(`(^|[^A-Za-z0-9_./-])(` + path + `)(` + rest + `)`)})
	}
	slices.SortStableFunc(p.list, func(a, b hidden) int { return cmp.Compare(len(b.fixed), len(a.fixed)) })
	return p
}

// Public is a text with the places under the names that users know.
func (p *Places) Public(text string) string {
	for _, at := range p.list {
		if !strings.Contains(text, at.fixed) {
			continue
		}
		text = at.pattern.ReplaceAllStringFunc(text, func(found string) string {
			m := at.pattern.FindStringSubmatch(found)
			switch before, below := m[1], m[3]; {
			case below != "" && below[0] != '/':
				return found // another directory, whose name is longer
			case at.Same:
				return before + at.Name + below
			default:
				return before + at.Name
			}
		})
	}
	return text
}
