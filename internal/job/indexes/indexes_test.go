package indexes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestIndexesMinus compares the difference of two sets with the one that is
// drawn index by index.
func TestIndexesMinus(t *testing.T) {
	draw := func(rt *rapid.T, name string) (set Set) {
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 30), 0, 25).Draw(rt, name) {
			set = set.With(i)
		}
		return set
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, u := draw(rt, "s"), draw(rt, "t")
		var want Set
		for i := range 31 {
			if s.Has(i) && !u.Has(i) {
				want = want.With(i)
			}
		}
		if got := s.Minus(u); got.String() != want.String() {
			rt.Fatalf("%s without %s is %s, want %s", s, u, got, want)
		}
	})
}

// FuzzIndexes: what is taken is a bounded set in its canonical form, which reads
// back to itself.
func FuzzIndexes(f *testing.F) {
	for _, s := range []string{"0-9,20-40:5", "1-5:9223372036854775807", "9-10:9223372036854775807", "0-99%8", "-5--1", "1,1", "0-9999999", "", "+1", "1-5:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set, most, err := ParseArray(s)
		if err != nil {
			return
		}
		last := -1
		for _, r := range set {
			if r.First <= last || r.Last < r.First || r.Last > maxIndex {
				t.Fatalf("%q is %v", s, set)
			}
			last = r.Last + 1 // neighbours are joined
		}
		if n := set.Len(); n < 1 || n > Max || most < 0 {
			t.Fatalf("%q has %d tasks, %d at once", s, n, most)
		}
		again, err := Parse(set.String())
		if diff := cmp.Diff(set, again); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", s, err, diff)
		}
	})
}
