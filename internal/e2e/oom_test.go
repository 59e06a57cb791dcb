package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestStepsOutOfMemory: a step that takes more memory than there is ends alone, on any node
// and in an image of its own, and its script goes on. A program of the script's own ends alone,
// too, and the job is out of memory then.
func TestStepsOutOfMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{nodes: 2})
	for _, c := range []struct {
		name, script, out string
		end               ended
		sacct             string
	}{
		{"step", `srun -n1 -N1 tail /dev/zero 2> /tmp/err; echo code $?
grep -c 'slurmstepd: error: Detected 1 oom_kill event in StepId=.*\.0\. Some of the step tasks have been OOM Killed\.' /tmp/err
grep -c 'srun: error: n.*: task 0: Out Of Memory' /tmp/err
srun -n1 -N1 echo next`, "code 1\n1\n1\nnext\n", finished, ".batch|COMPLETED|0:0\n.0|OUT_OF_MEMORY|0:125\n.1|COMPLETED|0:0\n"},
		{"other node", `srun -n1 -N1 --relative=1 tail /dev/zero 2> /tmp/err || srun -N2 -n2 echo next`, "next\nnext\n", finished,
			".batch|COMPLETED|0:0\n.0|OUT_OF_MEMORY|0:125\n.1|COMPLETED|0:0\n"},
		{"a child", `srun -n1 -N1 sh -c 'tail /dev/zero; echo goes on' 2> /tmp/err; echo code $?`, "goes on\ncode 1\n", finished,
			".batch|COMPLETED|0:0\n.0|OUT_OF_MEMORY|0:125\n"},
		{"own image", `srun -n1 -N1 --container-image=` + image + ` --container-name=own tail /dev/zero 2> /tmp/err; echo code $?`, "code 1\n", finished,
			".batch|COMPLETED|0:0\n.0|OUT_OF_MEMORY|0:125\n"},
		{"steps first", `srun -n1 -N1 sh -c 'touch /tmp/on; exec sleep 1000' 2> /tmp/err & until [ -e /tmp/on ]; do sleep 0.1; done; tail /dev/zero; echo own $?; wait $!; echo step $?`, "Killed\nown 137\nstep 1\n",
			ended{job.Failed, job.OOM, 0}, ".batch|OUT_OF_MEMORY|0:125\n.0|OUT_OF_MEMORY|0:125\n"},
		{"script", `tail /dev/zero; echo code $?`, "Killed\ncode 137\n", ended{job.Failed, job.OOM, 0}, ".batch|OUT_OF_MEMORY|0:125\n"},
		{"both", `srun -n1 -N1 tail /dev/zero 2> /tmp/err; exit 3`, "", ended{job.Failed, job.ExitCode, 3}, ".batch|FAILED|3:0\n.0|OUT_OF_MEMORY|0:125\n"},
	} {
		id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " -N2 -n2 --mem=64M\n" + c.script + "\n")
		d := s.wait(id)
		out := s.must("glog", id)
		if diff := cmp.Diff(c.end, endOf(d)); diff != "" || out != c.out {
			t.Errorf("%s: %q (-want +got):\n%s%s", c.name, out, diff, describe(d))
		}
		rows := s.slurm(nil, "", "sacct", "-n", "-P", "-o", "JobID,State,ExitCode", "-j", id).out
		if diff := cmp.Diff(c.sacct, stepRows(rows, id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// stepRows are sacct's rows of a job's steps, without the job's number.
func stepRows(text, id string) (rows string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, id+"."); ok {
			rows += "." + rest
		}
	}
	return rows
}
