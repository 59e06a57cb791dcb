package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestScriptRunsOnce: a batch script on two nodes runs on the first of them
// alone, its end is the job's, and nothing of the user's runs on the other.
func TestScriptRunsOnce(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	for code, want := range map[string]ended{"0": finished, "7": {job.Failed, job.ExitCode, 7}} {
		id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --nodes=2 --mem=64M --container-mounts=/project\necho $SLURM_NODEID >> /project/ran-" + code + "\nexit " + code + "\n")
		d := s.wait(id)
		if diff := cmp.Diff(want, endOf(d)); diff != "" {
			t.Errorf("exit %s (-want +got):\n%s\n%s", code, diff, describe(d))
		}
		if got := lines(t, filepath.Join(s.project(), "ran-"+code)); len(got) != 1 || got[0] != "0" {
			t.Errorf("exit %s: it ran on %q", code, strings.Join(got, " "))
		}
	}
	// Cancelled while it runs: both ranks end at once, within no grace.
	id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --nodes=2 --mem=64M\nsleep 1000\n")
	s.waitRunning(id)
	if out := s.must("gexec", "--rank", "1", id, "--", "cat", "/proc/1/comm"); out != "gbatch-rank\n" {
		t.Errorf("rank 1 runs %q", out)
	}
	s.must("gcancel", id)
	if d := s.wait(id); d.State != job.Cancelled {
		t.Errorf("cancelled:\n%s", describe(d))
	}
}
