package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestWhatIf replays the past of a controller out of its directory, while it runs
// and when it does not, and out of a backup: all three have the same jobs.
func TestWhatIf(t *testing.T) {
	s := newSite(t, siteOptions{})
	for range 2 {
		if d := s.wait(s.submit(doc{name: "past", command: []string{"true"}})); d.State != job.Finished {
			t.Fatal(describe(d))
		}
	}
	file := filepath.Join(s.dir, "backup")
	s.must("gctld", "backup", file, "--config", s.ctld.config)
	replay := func(what, from string) {
		t.Helper()
		var reports []struct{ Jobs int }
		r := s.run("gctld", "sim", "--json", "--from-store", from, "--config", s.ctld.config)
		if err := json.Unmarshal([]byte(r.out), &reports); err != nil || len(reports) != 2 || reports[0].Jobs != 2 || reports[1].Jobs != 2 {
			t.Errorf("replay %s (%v): %v", what, err, r)
		}
	}
	replay("of a controller that runs", s.dir+"/ctld")
	replay("of a backup", file)
	if r := s.run("gctld", "sim", "--from-store", s.dir+"/ctld/store"); r.code != 0 || !strings.Contains(r.err, "The rules are those of "+s.ctld.config) {
		t.Errorf("a store whose configuration lies above it: %v", r)
	}
	s.ctld.kill()
	replay("of a controller that does not run", s.dir+"/ctld")
	s.ctld.start()
	s.waitNodes("up", 1)
}

// TestBackup backs up a controller at work, destroys it, and restores it beside
// nodes that went on: what ran runs on, what began later is ended, and nothing
// runs twice.
func TestBackup(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	report := "echo $GBATCH_JOB_NUMBER >> /project/ran; "
	untilTold := doc{command: sh(report + "until [ -e /project/go ]; do sleep 0.05; done; exit 9"), storage: []any{"/project"}, cpus: 4, name: "goes-on"}
	goesOn := s.submit(untilTold)
	s.waitRunning(goesOn)
	once := doc{command: sh(report + "exit 0"), storage: []any{"/project"}, cpus: 4, name: "waits"}
	blocks := s.submit(doc{command: idle, cpus: 4, name: "blocks"})
	s.waitRunning(blocks)
	waits := s.submit(once)

	file := filepath.Join(s.dir, "backup")
	gctld := func(args ...string) result { return s.run("gctld", append(args, "--config", s.ctld.config)...) }
	if r := gctld("backup", file); r.code != 0 {
		t.Fatalf("gctld backup: %v", r)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v (%v), and holds keys", st.Mode(), err)
	}
	if r := gctld("backup", file); r.code == 0 {
		t.Error("gctld backup wrote over a file that was there")
	}

	// What the backup does not know of: a job that ends, one that runs, and one
	// that waited then and runs now.
	s.must("gcancel", blocks)
	if d := s.wait(waits); d.State != job.Finished {
		t.Fatal(describe(d))
	}
	late := untilTold
	late.name = "late"
	lost := s.submit(late)
	s.waitRunning(lost)

	if r := gctld("restore", file); r.code == 0 {
		t.Error("gctld restore wrote over a controller's directory")
	}
	s.ctld.kill()
	if err := os.RemoveAll(s.dir + "/ctld"); err != nil {
		t.Fatal(err)
	}
	if r := gctld("restore", file); r.code != 0 {
		t.Fatalf("gctld restore: %v", r)
	}
	s.ctld.start()
	s.waitNodes("up", 1)

	if d := s.job(goesOn); d.State != job.Running {
		t.Errorf("the job that ran all the time:\n%s", describe(d))
	}
	if d := s.job(waits); d.State != job.OnHold {
		t.Errorf("the job that waited, and ran after the backup:\n%s", describe(d))
	}
	if d := s.wait(blocks); d.State != job.Failed || d.Reason != string(job.NodeFail) {
		t.Errorf("the job that ended after the backup:\n%s", describe(d))
	}
	if r := s.run("gqueue", "show", lost); r.code != 3 {
		t.Errorf("the job that was submitted after the backup: %v", r)
	}
	fresh := s.submit(once)
	a, _ := strconv.Atoi(lost)
	if b, _ := strconv.Atoi(fresh); b <= a {
		t.Errorf("number %s is given after %s was", fresh, lost)
	}
	if d := s.wait(fresh); d.State != job.Finished {
		t.Errorf("a new job:\n%s", describe(d))
	}
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ended{job.Failed, job.ExitCode, 9}, endOf(s.wait(goesOn))); diff != "" {
		t.Errorf("end of the job that went on (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{goesOn, waits, lost, fresh}, lines(t, filepath.Join(s.project(), "ran"))); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	s.must("gcancel", "--release", waits) // somebody says that it shall run again
	if d := s.wait(waits); d.State != job.Finished {
		t.Errorf("released:\n%s", describe(d))
	}
}
