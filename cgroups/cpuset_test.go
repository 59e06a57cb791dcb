package cgroups_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/cgroups"
)

func TestParseCPUSet(t *testing.T) {
	cases := map[string]struct {
		in, out string // out "" with in not empty is an error
	}{
		"none":      {"", ""},
		"one":       {"5\n", "5"},
		"list":      {"3,1,2,9", "1-3,9"},
		"range":     {"0-3,8-9,64-130", "0-3,8-9,64-130"},
		"pair":      {"0,1", "0-1"},
		"backwards": {"3-1", ""},
		"word":      {"a", ""},
		"negative":  {"-1", ""},
		"gap":       {"1,,2", ""},
		"huge":      {"0-99999999", ""},
		"plus":      {"+1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := cgroups.ParseCPUSet(tc.in)
			if (err != nil) != (tc.out == "" && tc.in != "") {
				t.Fatalf("error %v", err)
			}
			if got := set.String(); got != tc.out {
				t.Errorf("got %q, want %q", got, tc.out)
			}
		})
	}
}

func FuzzParseCPUSet(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,7", "65535", "1-", ",", "9-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := cgroups.ParseCPUSet(list)
		if err != nil {
			return
		}
		again, err := cgroups.ParseCPUSet(set.String())
		if err != nil || again.String() != set.String() {
			t.Errorf("%q became %q, then %q, %v", list, set, again, err)
		}
	})
}

// The set operations against the same on plain maps.
func TestCPUSetOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) ([]int, cgroups.CPUSet) {
			cpus := rapid.SliceOfDistinct(rapid.IntRange(0, 300), rapid.ID[int]).Draw(t, name)
			return cpus, cgroups.NewCPUSet(cpus...)
		}
		as, a := draw("a")
		bs, b := draw("b")
		var union, both, minus []int
		for c := range 301 {
			inA, inB := slices.Contains(as, c), slices.Contains(bs, c)
			if inA || inB {
				union = append(union, c)
			}
			if inA && inB {
				both = append(both, c)
			}
			if inA && !inB {
				minus = append(minus, c)
			}
			if a.Has(c) != inA {
				t.Fatalf("has %d: %v", c, a.Has(c))
			}
		}
		for name, tc := range map[string]struct {
			got  cgroups.CPUSet
			want []int
		}{"union": {a.Union(b), union}, "intersect": {a.Intersect(b), both}, "minus": {a.Minus(b), minus}} {
			if tc.got.Len() != len(tc.want) || tc.got.IsEmpty() != (len(tc.want) == 0) || !slices.Equal(tc.got.List(), tc.want) {
				t.Fatalf("%s is %s, want %v", name, tc.got, tc.want)
			}
		}
		text, err := a.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back cgroups.CPUSet
		if err := back.UnmarshalText(text); err != nil || cmp.Diff(a.List(), back.List()) != "" {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
	})
}
