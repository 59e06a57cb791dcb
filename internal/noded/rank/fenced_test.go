package rank

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/oci/lease"
	"gbatch/oci/result"
)

// TestFenced: a container that the guard ended is the node's fault, whatever its shim
// knows; how one ended by itself stays its own.
func TestFenced(t *testing.T) {
	dir := t.TempDir()
	killed, done := result.Exit{Code: 137, Signal: int(unix.SIGKILL)}, result.Exit{Code: 3}
	why := func(e result.Exit) job.Reason { return exitOf(fenced(dir, e), nil, limits{}).Reason }
	if got := why(killed); got != job.Signal {
		t.Errorf("killed by whoever: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, lease.FileOver), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := why(killed); got != job.NodeFail {
		t.Errorf("killed by the guard: %s", got)
	}
	if got := why(done); got != job.ExitCode {
		t.Errorf("ended by itself before: %s", got)
	}
}
