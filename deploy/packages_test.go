package deploy

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		if deb, rpm := strings.Count(string(out), "_1.2.3_"), strings.Count(string(out), "-1.2.3-1."); deb != 4 || rpm != 4 {
			t.Errorf("there are %d .deb and %d .rpm of that version: %s", deb, rpm, out)
		}
		if umask != "022" {
			continue
		}
		needed(t, filepath.Join(dir, "build/packages"))
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

// needed asks rpm what packages lack on a machine that has nothing.
func needed(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Log("SKIPPED: no rpm here")
		return
	}
	script := `rpm --root "$1" --dbpath /db --force-debian -U --test "$2"/*.rpm 2>&1`
	out, err := exec.Command("sh", "-c", script, "needed", t.TempDir(), dir).Output()
	var missing []string
	for line := range strings.Lines(string(out)) {
		if what, by, ok := strings.Cut(strings.TrimSpace(line), " is needed by gbatch-"); ok {
			missing = append(missing, strings.SplitN(by, "-", 2)[0]+": "+what)
		}
	}
	want := []string{"controller: /usr/bin/getent", "controller: coreutils",
		"node: libc.so.6(GLIBC_2.34)(64bit)", "node: libseccomp.so.2()(64bit)", "node: ca-certificates", "node: e2fsprogs"}
	if diff := cmp.Diff(want, missing); diff != "" || err == nil {
		t.Errorf("what the packages need (-want +got), %v:\n%s\n%s", err, diff, out)
	}
}

// TestNodeNeedsNoNewerLibraries reads from the program what its package must ask for.
func TestNodeNeedsNoNewerLibraries(t *testing.T) {
	programs, _ := filepath.Glob("../bin/gnoded")
	cross, _ := filepath.Glob("../build/*/bin/gnoded")
	if programs = append(programs, cross...); len(programs) == 0 {
		t.Skip("SKIPPED: gnoded is not built")
	}
	for _, p := range programs {
		f, err := elf.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		libraries, err := f.ImportedLibraries()
		if diff := cmp.Diff([]string{"libc.so.6", "libseccomp.so.2"}, slices.Sorted(slices.Values(libraries))); err != nil || diff != "" {
			t.Errorf("libraries of %s (-want +got), %v:\n%s", p, err, diff)
		}
		symbols, err := f.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			var minor int
			if _, err := fmt.Sscanf(s.Version, "GLIBC_2.%d", &minor); err == nil && minor > 34 {
				t.Errorf("%s needs %s of %s, and its package asks for GLIBC_2.34", p, s.Name, s.Version)
			}
		}
	}
}
