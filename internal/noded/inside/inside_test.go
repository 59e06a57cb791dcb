package inside

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKeep: what somebody removes of the program's directory is there again for the next container.
func TestKeep(t *testing.T) {
	before, after := program, commands
	t.Cleanup(func() { program, commands = before, after })
	program, commands = []byte("#!/bin/true\n"), []byte("#!/bin/false\n")
	dir := t.TempDir()
	own, err := Lay(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{dir, own, filepath.Join(own, Rank), filepath.Join(own, "srun"), filepath.Join(own, "sbatch")} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		if err := Keep(own); err != nil {
			t.Errorf("without %s: %v", gone, err)
		}
		if text, err := os.ReadFile(filepath.Join(own, "srun")); string(text) != string(program) {
			t.Errorf("without %s: srun is %q, %v", gone, text, err)
		}
		if text, err := os.ReadFile(filepath.Join(own, "sbatch")); string(text) != string(commands) {
			t.Errorf("without %s: sbatch is %q, %v", gone, text, err)
		}
	}
}
