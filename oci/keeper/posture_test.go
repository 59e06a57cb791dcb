package keeper

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestPosture: limits and priorities that a program may change of its keeper show, each.
func TestPosture(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &was); err != nil {
		t.Fatal(err)
	}
	files := openPosture()
	before := readPosture(files)
	if diff := cmp.Diff(before, readPosture(files), cmp.AllowUnexported(posture{})); diff != "" {
		t.Fatalf("without a change (-before +after):\n%s", diff)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: was.Cur ^ 4096, Max: max(was.Max, was.Cur^4096)}); err != nil {
		t.Skip("SKIPPED, limits cannot be changed here:", err)
	}
	defer unix.Setrlimit(unix.RLIMIT_CORE, &was) //nolint:errcheck // it was so
	if readPosture(files) == before {
		t.Error("another limit does not show")
	}
}
