package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamedJobs(t *testing.T) {
	plain := func(ids ...string) (out []asked) {
		for _, id := range ids {
			out = append(out, asked{id: id})
		}
		return out
	}
	tests := map[string]struct {
		words []string
		want  []asked // nil: refused
	}{
		"numbers":   {[]string{"1,3", "12"}, plain("1", "3", "12")},
		"range":     {[]string{"3-5"}, []asked{{"3", true}, {"4", true}, {"5", true}}},
		"both":      {[]string{"7,3-3"}, []asked{{"7", false}, {"3", true}}},
		"tasks":     {[]string{"3_[4,6-9],8_1"}, plain("3_[4,6-9]", "8_1")},
		"name":      {[]string{"run-4"}, plain("run-4")},
		"uuid":      {[]string{"0b5c0000-0000-4000-8000-000000000001"}, plain("0b5c0000-0000-4000-8000-000000000001")},
		"backwards": {[]string{"5-3"}, nil},
		"too many":  {[]string{"1-1001"}, nil},
		"huge":      {[]string{"1-9223372036854775807"}, nil},
		"zero":      {[]string{"0-3"}, plain("0-3")}, // a name, if anything
	}
	for name, tc := range tests {
		got, err := namedJobs(tc.words)
		if (err == nil) != (tc.want != nil) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(asked{})); err == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
