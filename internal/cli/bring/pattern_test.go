package bring

import (
	"strings"
	"testing"
)

// TestPatterns: lines of .gitignore say what git takes them for.
func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		line, leaves, keeps string // names; those that end with / are directories
	}{
		{"a", "a a/ b/a a/b c/a/b", "b ab"},
		{"a/", "a/ b/a/ a/b b/a/c", "a b/a"},
		{"/a", "a a/b", "b/a"},
		{"a/b", "a/b a/b/ a/b/c", "c/a/b b a"},
		{"*.o", "x.o a/x.o x.o/y .o", "x.oo o"},
		{"a?", "ab a/ac", "a abc"},
		{"[ab]c", "ac x/bc", "cc c"},
		{"a/*", "a/b a/b/c", "a a/ b/a/c"},
		{"a/**", "a/b a/b/c", "a a/"},
		{"/**", "a a/ a/b", ""},
		{"**", "a a/b/c", ""},
		{"**/a", "a b/a b/c/a b/a/c", "b ab"},
		{"a/**/b", "a/b a/c/b a/c/d/b a/c/b/e", "b c/a/b a/c"},
		{"a/**/b/**/c", "a/b/c a/x/b/y/z/c a/b/b/c", "a/c a/b b/c"},
		{"a**b", "ab axxb x/ab", "a/b"},
		{`\#a`, "#a", "a"},
		{`\!a`, "!a", "a"},
		{"a  ", "a", "b"},
		{"[a", "", "a [a"},
	} {
		p := parsePattern(tc.line)
		for want, names := range map[verdict]string{leaves: tc.leaves, silent: tc.keeps} {
			for _, name := range strings.Fields(names) {
				name, isDir := strings.CutSuffix(name, "/")
				if got := p.of(strings.Split(name, "/"), isDir); got != want {
					t.Errorf("%q says %d of %q (a directory: %v), want %d", tc.line, got, name, isDir, want)
				}
			}
		}
		back := parsePattern("!" + tc.line)
		if name, isDir := strings.CutSuffix(strings.Split(tc.leaves, " ")[0], "/"); name != "" && back.of(strings.Split(name, "/"), isDir) != brings {
			t.Errorf("%q does not bring %q", "!"+tc.line, name)
		}
	}
}

// TestPatternCost: a pattern of many "**" takes no time that grows with its stars' choices.
func TestPatternCost(t *testing.T) {
	p := parsePattern(strings.Repeat("**/a/", 100) + "b")
	if p.of(strings.Split(strings.Repeat("a/", 200)+"c", "/"), false) != silent {
		t.Error("it fits")
	}
}
