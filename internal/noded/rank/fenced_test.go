package rank

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestOutOfMemory: a script's container goes on when the limit has ended one process. Then it
// counts whether that was of a step; of other containers whether they ended by it.
func TestOutOfMemory(t *testing.T) {
	script := limits{script: true, steps: 2}
	for _, c := range []struct {
		exit result.Exit
		in   limits
		want job.Reason
		text string
	}{
		{result.Exit{OOMKills: 2}, script, job.None, ""},
		{result.Exit{OOMKills: 3}, script, job.OOM, "out of memory"},
		{result.Exit{OOMKills: 2, Code: 3, OOMKilled: true}, script, job.ExitCode, "exit code 3; of its steps the memory limit ended 2 processes"},
		{result.Exit{OOMKills: 1}, limits{}, job.None, ""},
		{result.Exit{OOMKills: 1, Code: 137, Signal: 9, OOMKilled: true}, limits{}, job.OOM, "out of memory"},
	} {
		if reason, text := reasonOf(c.exit, nil, c.in); reason != c.want || !strings.HasPrefix(text, c.text) {
			t.Errorf("%+v: %s, %q", c, reason, text)
		}
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
