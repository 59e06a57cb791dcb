package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asMain makes the test binary play the program.
const asMain = "GBATCH_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// gnoded runs the program and returns what it printed, and whether it failed.
func gnoded(t *testing.T, args ...string) (out string, failed bool) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	b, err := cmd.CombinedOutput()
	return string(b), err != nil
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "controller: https://gctld.example.org:7070#sha256=Gs6YhXf2YAdHLDaPKHtSVdV9vmC5TDKi8YpSNAqyCnw\n")
	bad := write("bad.yaml", "controller: https://gctld.example.org:7070#sha256=Gs6YhXf2YAdHLDaPKHtSVdV9vmC5TDKi8YpSNAqyCnw\nstatedir: /x\n")
	none := filepath.Join(dir, "none.yaml")
	tests := map[string]struct {
		args   []string
		want   string
		failed bool
	}{
		"version":     {[]string{"--version"}, "dev", false},
		"good":        {[]string{"check-config", good}, "good.yaml is fine", false},
		"bad":         {[]string{"check-config", bad}, `statedir (line 2): is not a field of this document; did you mean "stateDir"?`, true},
		"no-file":     {[]string{"run", "--config", none}, "make one by `gnoded join ADDRESS`, name one with --config, or give --controller", true},
		"bad-flag":    {[]string{"--config", good, "--name", "a b"}, `name: "a b": use letters`, true},
		"check-fails": {[]string{"check", "--config", good, "--controller", "https://127.0.0.1:9#sha256=Gs6YhXf2YAdHLDaPKHtSVdV9vmC5TDKi8YpSNAqyCnw", "--state-dir", filepath.Join(dir, "state")}, "FAIL  controller", true},
		// Words by which the program starts itself mean nothing to it else.
		"shim": {[]string{"shim", dir}, "unexpected argument shim", true},
		"init": {[]string{"init"}, "unexpected argument init", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, failed := gnoded(t, tc.args...)
			if failed != tc.failed || !strings.Contains(out, tc.want) {
				t.Errorf("failed %t, want %t with %q:\n%s", failed, tc.failed, tc.want, out)
			}
		})
	}
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	for code, args := range map[int][]string{2: {"run", "--nonsense"}, 1: {"run", "--config", filepath.Join(t.TempDir(), "none")}} {
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Env = append(os.Environ(), asMain+"=1")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("gnoded %v exits with %d, want %d: %s", args, got, code, out)
		}
	}
}
