package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigurations checks the files that are meant to be copied, and that a
// mistake in one is found before the daemon runs.
func TestConfigurations(t *testing.T) {
	needs(t)
	for _, daemon := range []string{"gctld", "gnoded"} {
		t.Run(daemon, func(t *testing.T) {
			good, err := filepath.Abs("../../deploy/" + daemon + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			if r := execute(exec.Command(filepath.Join(bin, daemon), "check-config", good)); r.code != 0 {
				t.Errorf("deploy/%s.yaml: %v", daemon, r)
			}
			b, err := os.ReadFile(good)
			if err != nil {
				t.Fatal(err)
			}
			bad := filepath.Join(t.TempDir(), "bad.yaml")
			if err := os.WriteFile(bad, append(b, "surprise: 1\n"...), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{{"check-config", bad}, {"run", "--config", bad}} {
				r := execute(exec.Command(filepath.Join(bin, daemon), command...))
				if r.code == 0 || !strings.Contains(r.err, "surprise") || !strings.Contains(r.err, bad) {
					t.Errorf("%s: %v; want an error with the file and the key", command[0], r)
				}
			}
		})
	}
}
