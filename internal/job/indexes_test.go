package job

import (
	"testing"

	"pgregory.net/rapid"
)

// TestIndexesMinus compares the difference of two sets with the one that is
// drawn index by index.
func TestIndexesMinus(t *testing.T) {
	draw := func(rt *rapid.T, name string) (set Indexes) {
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 30), 0, 25).Draw(rt, name) {
			set = set.With(i)
		}
		return set
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, u := draw(rt, "s"), draw(rt, "t")
		var want Indexes
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
