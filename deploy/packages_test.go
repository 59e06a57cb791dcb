package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesAreReproducible makes packages twice of the same small programs,
// which have another age and rights of another umask each time.
func TestPackagesAreReproducible(t *testing.T) {
	if out, err := exec.Command("go", "mod", "download", "github.com/goreleaser/nfpm/v2@v2.45.2").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the packager cannot be had: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("SKIPPED: no dpkg here")
	}
	sums := map[string]string{}
	for _, umask := range []string{"022", "077"} {
		dir := t.TempDir()
		script := `set -e
umask $1
cp -r ../scripts ../deploy ../docs ../README.md ../CHANGELOG.md "$2"
cd "$2"
mkdir -p bin build/man build/completion
for p in gctld gadm gnoded gslurm gsubmit; do echo $p >bin/$p; done
for m in gadm gsubmit; do echo .TH >build/man/$m.1; done
for m in gctld.8 gnoded.8 gctld.yaml.5 gbatch-job.5; do echo .TH >build/man/$m; done
for s in bash zsh fish; do echo $s >build/completion/gbatch.$s; done
VERSION=1.2.3 SOURCE_DATE_EPOCH=1790000000 scripts/packages >/dev/null
cd build/packages
sha256sum *`
		cmd := exec.Command("bash", "-c", script, "packages", umask, dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("make packages: %v", err)
		}
		sums[umask] = string(out)
		if n := strings.Count(string(out), "_1.2.3_"); n < 4 {
			t.Errorf("there are %d packages of that version: %s", n, out)
		}
		if umask != "022" {
			continue
		}
		cmd = exec.Command(filepath.Join(dir, "scripts/packages"))
		cmd.Env = append(os.Environ(), "VERSION=1.2-3")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "VERSION=1.2-3") {
			t.Errorf("a version that cannot be ordered: %v, %s", err, out)
		}
	}
	if sums["022"] != sums["077"] {
		t.Errorf("packages of the same programs differ:\n%s\n%s", sums["022"], sums["077"])
	}
}
