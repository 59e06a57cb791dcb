package keeper

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPosture: limits and priorities that a program may change of its keeper show, each.
func TestPosture(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &was); err != nil {
		t.Fatal(err)
	}
	before := posture()
	if again := posture(); again != before {
		t.Fatalf("without a change:\n%s\n%s", before, again)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: was.Cur ^ 4096, Max: max(was.Max, was.Cur^4096)}); err != nil {
		t.Skip("SKIPPED, limits cannot be changed here:", err)
	}
	defer unix.Setrlimit(unix.RLIMIT_CORE, &was) //nolint:errcheck // it was so
	if posture() == before {
		t.Error("another limit does not show")
	}
}
