package main

import (
	"os"
	"os/exec"
	"path/filepath"
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

func TestWrongUsageExitsWithTwo(t *testing.T) {
	for code, args := range map[int][]string{2: {"run", "--nonsense"}, 1: {"run", "--config", filepath.Join(t.TempDir(), "none")}} {
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Env = append(os.Environ(), asMain+"=1")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("gctld %v exits with %d, want %d: %s", args, got, code, out)
		}
	}
}
