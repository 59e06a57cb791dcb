package rank

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/oci/draft"
)

// TestHides: no file is made in what a job mounts, and none is put over what is not a
// plain file there.
func TestHides(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "srun"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "bin", "sbcast")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		source, target, file string
		want                 bool
	}{
		"elsewhere":               {dir, "/data", "/usr/bin/srun", false},
		"beside it":               {dir, "/usr/binary", "/usr/bin/srun", false},
		"below it":                {dir, "/usr/bin/srun.d", "/usr/bin/srun", false},
		"there already":           {dir, "/usr", "/usr/bin/srun", false},
		"not there":               {dir, "/usr", "/usr/bin/scontrol", true},
		"of the directory itself": {dir, "/usr/bin", "/usr/bin/srun", true},
		"a link":                  {dir, "/usr", "/usr/bin/sbcast", true},
		"its own place":           {filepath.Join(dir, "bin", "srun"), "/usr/bin/srun", "/usr/bin/srun", true},
		"a source that is gone":   {filepath.Join(dir, "none"), "/usr", "/usr/bin/srun", true},
	} {
		if got := hides(draft.Mount{Source: tc.source, Target: tc.target}, tc.file); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
