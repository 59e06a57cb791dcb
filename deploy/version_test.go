package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVersionsGrow asks dpkg whether the versions of this history's commits
// grow: the last thirty, and thirty of those before.
func TestVersionsGrow(t *testing.T) {
	list, err := exec.Command("git", "-C", "..", "log", "--first-parent", "--format=%H").Output()
	if err != nil {
		t.Skipf("SKIPPED: there is no history here: %v", err)
	}
	commits := strings.Fields(string(list))
	newer := version(t, "..", commits[0])
	for i := 1; i < len(commits); i += 1 + max(0, i-30)/30 {
		older := version(t, "..", commits[i])
		lower(t, older, newer)
		newer = older
	}
	lower(t, "0~git.4ea1291", newer) // what packages were named before
	lower(t, "0.0.0+dev", newer)
}

// TestVersionsOfTags: tags, what comes after them, commits of one minute, a
// clock that went back, a merge, and what is not committed.
func TestVersionsOfTags(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../scripts/version")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts/version"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := version(t, dir, ""); got != "0.0.0+dev" {
		t.Errorf("without git it is %q", got)
	}
	now := time.Date(2026, 11, 22, 11, 4, 0, 0, time.UTC)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", fmt.Sprintf("GIT_COMMITTER_DATE=%d +0000", now.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "scripts")
	commit := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		git("commit", "-q", "--allow-empty", "-m", "x")
	}
	before := ""
	check := func(prefix string) {
		t.Helper()
		got := version(t, dir, "")
		if !strings.HasPrefix(got, prefix) {
			t.Errorf("the version is %q; want %q", got, prefix)
		}
		if before != "" {
			lower(t, before, got)
		}
		before = got
	}
	commit(0)
	check("0.0.0+git202611221104.1.")
	commit(time.Second)
	check("0.0.0+git202611221104.2.")
	commit(-time.Hour)
	check("0.0.0+git202611221104.3.")
	git("tag", "v0.1.0-rc1")
	check("0.1.0~rc1")
	commit(time.Minute)
	check("0.1.0~rc1+git202611221104.4.")
	git("tag", "-a", "-m", "x", "v0.1.0-rc2")
	git("tag", "v0.1.0")
	check("0.1.0")
	git("checkout", "-q", "-b", "other")
	commit(2 * time.Hour)
	git("checkout", "-q", "main")
	commit(-time.Minute)
	check("0.1.0+git202611221204.5.")
	git("merge", "-q", "--no-edit", "other")
	check("0.1.0+git202611221205.7.")
	if err := os.WriteFile(filepath.Join(dir, "scripts/version"), append(script, "# more\n"...), 0o755); err != nil {
		t.Fatal(err)
	}
	check(before + ".dirty")
	git("tag", "v0.1.1")
	git("tag", "v0.1.1-rc1")
	git("checkout", "-q", "scripts/version")
	check("0.1.1")
}

func version(t *testing.T, dir, commit string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "scripts/version"), strings.Fields(commit)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the version of %q: %v", commit, err)
	}
	return strings.TrimSpace(string(out))
}

// lower fails where dpkg, or rpm if it is here, does not find a lower than b.
func lower(t *testing.T, a, b string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("SKIPPED: no dpkg here")
	}
	if err := exec.Command("dpkg", "--compare-versions", a, "lt", b).Run(); err != nil {
		t.Errorf("dpkg does not find %s lower than %s", a, b)
	}
	if _, err := exec.LookPath("rpm"); err != nil {
		return
	}
	out, err := exec.Command("rpm", "--eval", fmt.Sprintf("%%{lua: print(rpm.vercmp(%q, %q))}", a, b)).Output()
	if err != nil || strings.TrimSpace(string(out)) != "-1" {
		t.Errorf("rpm does not find %s lower than %s: %s %v", a, b, out, err)
	}
}
