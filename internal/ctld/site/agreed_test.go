package site

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiffer: settings that controllers must have alike are told apart by their paths, and what is
// a machine's own is not.
func TestDiffer(t *testing.T) {
	base := "dir: /var/a\n" + `
replica: {name: a, listen: "a:1"}
defaultProject: lab
policy: {qos: {high: {priority: 5}}}
projects: [{name: lab, members: [ann]}]
`
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"the same in other words", strings.ReplaceAll(base, "[{name: lab, members: [ann]}]", "\n- members:\n  - ann\n  name: 'lab'"), nil},
		{"lists without anything", base + "admins: []\noperators: []\nmetrics: {scrapers: [], aliases: []}\n", nil},
		{"of the machine", "dir: /var/b\nsocket: /run/b\nlisten: b:7077\nreserveMiB: 9\ncurvesMiB: 3\nlogs: {dir: /l, totalMiB: 60000}\nconnections: {total: 100}" +
			strings.NewReplacer("dir: /var/a", "", "name: a, ", "name: b, ").Replace(base), nil},
		{"a limit", base + "limits: {maxDuration: 40d}", []string{"limits.maxDuration"}},
		{"a limit of users", base + "limits: {perUser: {requests: 7}, grace: 31s}", []string{"limits.grace", "limits.perUser.requests"}},
		{"a member of a project", strings.ReplaceAll(base, "ann", "bob"), []string{"projects"}},
		{"a QOS", strings.ReplaceAll(base, "priority: 5", "priority: 6"), []string{"policy.qos"}},
		{"mail", base + "mail: {smtp: 'm:25', from: g@example.org}", []string{"mail"}},
		{"munge", base + "munge: {socket: /run/m}", []string{"munge"}},
		{"admins", base + "admins: [{group: ops}]", []string{"admins"}},
		{"patience", strings.ReplaceAll(base, "name: a,", "name: a, patience: 2s,"), []string{"replica.patience"}},
		{"the network of gangs", base + "gangSubnet: 10.215.0.0/16", []string{"gangSubnet"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := parse("a", []byte(base))
			if err != nil {
				t.Fatal(err)
			}
			b, err := parse("b", []byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, a.Agreed().Differ(b.Agreed())); diff != "" {
				t.Errorf("differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, b.Agreed().Differ(a.Agreed())); diff != "" {
				t.Errorf("the other way round (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAllIsDigested: no field of the configuration is left out of the comparison unseen, as JSON
// does with what is not exported.
func TestAllIsDigested(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(path, typ.Elem())
		case reflect.Map:
			walk(path+"[]", typ.Elem())
		case reflect.Struct:
			if seen[typ] || typ.Implements(textType) {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if at := path + "." + f.Name; !f.IsExported() || f.Tag.Get("json") == "-" {
					t.Errorf("%s is not in the digest", at)
				} else {
					walk(at, f.Type)
				}
			}
		case reflect.Func, reflect.Chan, reflect.Interface:
			t.Errorf("%s is a %s, which has no digest", path, typ)
		}
	}
	walk("Config", reflect.TypeFor[Config]())
}
