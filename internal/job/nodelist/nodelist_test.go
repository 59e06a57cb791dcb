package nodelist

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "a,b": "a b", "n[1-3]": "n1 n2 n3", "n[08-10,12],m": "n08 n09 n10 n12 m", ",a,": "a",
		"n[": "error", "n[1-": "error", "n[3-1]": "error", "n[x]": "error", "n[1]x": "error", "n[1-99999999]": "error", "n[" + strings.Repeat("0", 1<<10) + "1-9999]": "error", strings.Repeat("n", 1<<10) + "[1-9999]": "error",
	} {
		names, err := Parse(text)
		got := strings.Join(names, " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
		if n, err2 := Count(text); err2 == nil && n != len(names) || (err == nil) != (err2 == nil) {
			t.Errorf("%q has %d names, %v", text, n, err2)
		}
	}
}

// TestLongLists: a list as long as a document may be is read in time that grows
// with its length, and not with the square of it.
func TestLongLists(t *testing.T) {
	for text, want := range map[string]int{strings.Repeat("a,", 4<<20): 4 << 20, strings.Repeat(",", 4<<20): 0, strings.Repeat("n[1],", 9_999): 9_999} {
		if names, err := Parse(text); err != nil || len(names) != want {
			t.Errorf("%.5s... has %d names, %v; want %d", text, len(names), err, want)
		}
	}
	if _, err := Count(strings.Repeat("n[1-5000],", 1<<16)); err == nil {
		t.Error("more than 10,000 nodes are counted")
	}
}

// TestFormatNodes: names as Slurm writes them; and what is written is read as the
// same names.
func TestFormat(t *testing.T) {
	for names, want := range map[string]string{
		"": "", "a": "a", "n1": "n1", "n1 n2 n3": "n[1-3]", "n01 n02 n04": "n[01-02,04]", "n1 n2 m": "n[1-2],m", "a b": "a,b", "n9 n10": "n[9-10]", "n10 n08 n9": "n[10,08,9]", "gpu-01 gpu-03 cpu1": "gpu-[01,03],cpu1",
	} {
		if got := Format(strings.Fields(names)); got != want {
			t.Errorf("%s is %s, want %s", names, got, want)
		}
		if back, err := Parse(want); err != nil || strings.Join(back, " ") != names {
			t.Errorf("%s is read as %q, %v", want, back, err)
		}
	}
	if got := Repeats([]int{4, 4, 2, 3, 3, 3}); got != "4(x2),2,3(x3)" {
		t.Errorf("repeats: %s", got)
	}
}

// FuzzLists: a list of nodes has as many names as are counted, of a bounded
// number where ranges are among them, and reads back from how it is written.
func FuzzLists(f *testing.F) {
	for _, s := range []string{"n[01-03,7],m1", "n[1-10000]", "n[9999-1]", "n[0001-2]x", ",,a,", "n[", "[1]", "n[1-2][3]", "a b,\x00", "n[1],n[1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := Parse(s)
		n, err2 := Count(s)
		if (err == nil) != (err2 == nil) || err == nil && n != len(names) || strings.Contains(s, "[") && len(names) > maxNames+len(s) {
			t.Fatalf("%q has %d names, %v, and is counted as %d, %v", s, len(names), err, n, err2)
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.ContainsAny(name, "[],") }) {
			return // no name of a node, which is refused by who takes names
		}
		if back, err := Parse(Format(names)); err != nil || !slices.Equal(back, names) {
			t.Fatalf("%q is written as %q, which has %d names, %v", s, Format(names), len(back), err)
		}
	})
}
