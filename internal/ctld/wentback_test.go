package ctld

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// copyAway copies the controller's whole directory, the file beside the store too.
func (s *testSite) copyAway() string {
	s.t.Helper()
	s.stop()
	dir := filepath.Join(s.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(s.cfg.Dir)); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	return dir
}

// putBack replaces the controller's directory by a copy.
func (s *testSite) putBack(dir string) {
	s.t.Helper()
	s.stop()
	if err := errors.Join(os.RemoveAll(s.cfg.Dir), os.CopyFS(s.cfg.Dir, os.DirFS(dir))); err != nil {
		s.t.Fatal(err)
	}
	s.start()
}

// brief is a job that is over before one that waits could start.
func brief(cpus int) *api.SubmitRequest {
	q := hello(cpus)
	q.Job = bytes.Replace(q.Job, []byte(`"docker"`), []byte(`"scheduling":{"maxDuration":"1 minute"},"docker"`), 1)
	return q
}

// TestDirectoryPutBack puts the whole directory back from an older copy, with all that
// could tell of it. No number is given twice, also before the first node says what it was told; then the
// controller knows, nothing of the jobs between is taken for another's, and what it still knows goes on.
func TestDirectoryPutBack(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	goesOn := s.submit(hello(1), "")
	n.until(1)
	first := job.RankID{Job: goesOn.Number, Attempt: 1}
	n.report(first, node.PhaseRunning, nil)
	waits := s.submit(hello(8), "")
	older := s.copyAway()

	lost := s.submit(brief(2), "")
	lostRank := job.RankID{Job: lost.Number, Attempt: 1}
	n.until(2)
	n.report(lostRank, node.PhaseRunning, nil)
	last := s.submit(hello(8), "")

	s.putBack(older)
	early := s.submit(brief(2), "") // before anybody could tell
	if early.Number <= last.Number {
		t.Fatalf("number %d was given twice, or one below it", early.Number)
	}
	n.sync(nil)
	fresh := s.submit(brief(2), "").Number
	if fresh <= early.Number {
		t.Errorf("number %d was given twice", fresh)
	}
	want := map[job.Number]job.State{goesOn.Number: job.Running, waits.Number: job.OnHold, early.Number: job.Assigned}
	got := s.states()
	delete(got, fresh)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if n.stops[lostRank] == nil && n.held[lostRank].ID == lostRank {
		t.Errorf("the lost job goes on: %+v", n.held[lostRank])
	}
	if st := n.held[first]; st.Phase != node.PhaseRunning {
		t.Errorf("what was known on both sides has come to %+v, want it to go on", st)
	}
	if v := s.server.loop.View().Node("n1"); v.Unsure {
		n.sync(nil)
	}
	n.sync(nil)
	if v := s.server.loop.View().Node("n1"); v.Unsure {
		t.Error("the node gets no jobs any more")
	}
	before := s.server.loop.View().Next
	s.stop()
	s.start()
	n.sync(nil)
	if v := s.server.loop.View(); v.Next != before || v.Node("n1").Unsure {
		t.Error("an ordinary restart is taken for a step back")
	}
}

// TestPutBackIsNoticed puts the whole directory back from an older copy while the machine runs: the start is refused
// before anybody could be told a number a second time, and a command that names the loss goes on.
func TestPutBackIsNoticed(t *testing.T) {
	run := t.TempDir()
	s := newSite(t, func(c *site.Config) { c.Socket = filepath.Join(run, "sock") })
	s.submit(hello(1), "")
	older := s.copyAway()
	last := s.submit(hello(1), "").Number
	s.stop()
	if err := errors.Join(os.RemoveAll(s.cfg.Dir), os.CopyFS(s.cfg.Dir, os.DirFS(older))); err != nil {
		t.Fatal(err)
	}
	why := s.refused()
	wants(t, why, "it was put back from an older copy")
	_, rest, _ := strings.Cut(why, "gctld accept-loss ")
	named, _, _ := strings.Cut(rest, "`")
	if err := backup.AcceptLoss(s.cfg, named); err != nil {
		t.Fatal(err)
	}
	s.start()
	if n := s.submit(hello(1), "").Number; n <= last {
		t.Errorf("number %d was given again, or one below it: %d", last, n)
	}
	s.stop()
	s.start() // an ordinary one
}

// TestForgedRecords: what a node did not have from this controller tells nothing.
func TestForgedRecords(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	next := s.server.loop.View().Next
	for _, forged := range []string{"", "x", "eyJzdGFydCI6MSwiY29tbWl0cyI6OTk5LCJuZXh0Ijo5OTk5fQ.AAAA", n.records + "x", n.records[1:]} {
		n.records = forged
		n.sync(nil)
		if v := s.server.loop.View(); v.Next != next || v.Node("n1").Unsure {
			t.Errorf("%q is believed", forged)
		}
	}
}
