package transfer

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzCheckName gives names as a stranger's server lists them: what passes
// stays below the directory that it is put into.
func FuzzCheckName(f *testing.F) {
	for _, n := range []string{"a", "a/b", "../a", "/a", "a/../../b", "a//b", ".", "", "a\x00b", `a\b`, "a/."} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) == nil && !strings.HasPrefix(filepath.Join("/root", name), "/root/") {
			t.Errorf("%q leads elsewhere", name)
		}
	})
}
