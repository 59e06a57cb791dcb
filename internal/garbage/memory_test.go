package garbage

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBounded: the least bound of a process's control group and of those above it counts, where the machine has no less.
func TestBounded(t *testing.T) {
	const all = 100_000
	for what, tc := range map[string]struct {
		self   string
		bounds map[string]string
		want   uint64
	}{
		"v2":                   {"0::/a/b\n", map[string]string{"a/memory.max": "3000\n", "a/b/memory.max": "max\n"}, 3000},
		"v2, nearer is less":   {"0::/a/b\n", map[string]string{"a/memory.max": "3000\n", "a/b/memory.max": "2000\n"}, 2000},
		"v2, none":             {"0::/a/b\n", map[string]string{"a/memory.max": "max\n"}, all},
		"v2, in a container":   {"0::/../a\n", map[string]string{"memory.max": "4000\n"}, 4000},
		"v1":                   {"4:memory:/a\n3:cpu,cpuacct:/b\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/a/memory.limit_in_bytes": "5000\n", "memory/b/memory.limit_in_bytes": "1\n"}, 5000},
		"hybrid":               {"4:memory:/a\n0::/b\n", map[string]string{"memory/a/memory.limit_in_bytes": "6000\n"}, 6000},
		"the machine has less": {"0::/\n", map[string]string{"memory.max": "200000\n"}, all},
		"none":                 {"", nil, all},
	} {
		root := t.TempDir()
		for name, text := range tc.bounds {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := bounded(all, root, tc.self); got != tc.want {
			t.Errorf("%s: %d, want %d", what, got, tc.want)
		}
	}
}
