package human

import (
	"slices"
	"testing"

	"gbatch/internal/job/nodelist"
)

// FuzzHosts: a list of nodes expands to a bounded number of names, which written
// short and expanded again are the same.
func FuzzHosts(f *testing.F) {
	for _, s := range []string{"gpu[01-04,07],m1", "n[0-9223372036854775807]", "a,n[0-9223372036854775807]", "n[1-2]x", "n[", "n[]", "a]b[1]", "007,7,07"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := nodelist.Parse(s)
		if err != nil {
			return
		}
		if len(names) > 20_000+len(s) {
			t.Fatalf("%q are %d nodes", s, len(names))
		}
		if slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > 63 || !isHostName(n) }) {
			return // no node is called so
		}
		again, err := nodelist.Parse(Hosts(names))
		slices.Sort(names)
		slices.Sort(again)
		if err != nil || !slices.Equal(slices.Compact(names), slices.Compact(again)) {
			t.Errorf("%q are %q, and %q are %q, %v", s, names, Hosts(names), again, err)
		}
	})
}

func isHostName(s string) bool {
	for _, c := range s {
		if c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
