// Package settingstest compares commented files with the structs that they are
// read into. It is used by tests alone.
package settingstest

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/document"
	"gbatch/internal/settings"
)

// Missing are the keys of a struct's type that a file does not have.
func Missing(text string, t reflect.Type) (missing []string, err error) {
	root, err := document.ReadSettings([]byte(text))
	if err != nil {
		return nil, err
	}
	for _, path := range settings.Keys(t) {
		at := []*document.Node{root}
		for part := range strings.SplitSeq(path, ".") {
			at = descend(at, part)
		}
		if len(at) == 0 {
			missing = append(missing, path)
		}
	}
	return missing, nil
}

// descend are the members called part of objects, or with [] at its end the
// elements of these; all of them with *.
func descend(in []*document.Node, part string) (out []*document.Node) {
	name, elements := strings.CutSuffix(part, "[]")
	for _, n := range in {
		for _, kid := range n.Kids {
			switch {
			case n.Kind != document.ObjectKind || name != "*" && kid.Key != name:
			case elements:
				out = append(out, kid.Kids...)
			default:
				out = append(out, kid)
			}
		}
	}
	return out
}

// setting is a comment that is a setting: a key or an element of a list.
var setting = regexp.MustCompile(`(?m)^( *)# ((?: *(?:- )*[a-z]|  +[A-Z])[A-Za-z0-9_.:+-]*:(?: .*)?| *- .*)$`)

// Uncomment is a commented file with the settings in force that stand in it as
// comments.
func Uncomment(text string) string { return setting.ReplaceAllString(text, "$1$2") }

// EmptyIsNil takes lists and tables without anything for those that are not there.
var EmptyIsNil = cmp.FilterValues(func(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.IsValid() && y.IsValid() && (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Kind() == y.Kind() && x.Len()+y.Len() == 0
}, cmp.Ignore())
