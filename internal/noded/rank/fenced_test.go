package rank

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/node"
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

// TestBeganOnClock: where a shim died, and the node's clock was set while its program ran, that ran for as long as it did.
func TestBeganOnClock(t *testing.T) {
	const hour, ran = 3_600_000, 60_000
	for name, by := range map[string]int64{"ahead": 3 * hour, "back": -3 * hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			now := lease.WallMS()
			began := time.Now().UnixMilli() - by - ran
			is := node.RankStatus{Phase: node.PhaseRunning, StartedMS: began, WallMS: now - by}
			mark := result.Exit{Lost: true, Started: time.UnixMilli(began), Finished: time.Now(), WallMS: now}
			for what, out := range map[string]*node.Exit{
				"its mark alone": lostExit(errors.New("gone"), nil, is),
				"its shim died":  lastWord(mark, nil, limits{}, is),
			} {
				if lasted := out.EndedMS - out.StartedMS; lasted < ran-1000 || lasted > ran+1000 {
					t.Errorf("%s: it ran for %d ms, want %d", what, lasted, ran)
				}
			}
		})
	}
}
