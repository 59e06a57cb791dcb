package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStepsOutliveDaemons kills the controller and both nodes while a step runs on
// both: it runs on and ends as it would have, once, and the next one follows.
func TestStepsOutliveDaemons(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` -N 2 --mem=128M --container-mounts=/project
srun sh -c 'echo up >> /project/up-$SLURM_PROCID; until [ -e /project/go ]; do sleep 0.1; done; i=0; until [ $i = 30000 ]; do i=$((i+1)); done; echo done $SLURM_PROCID; exit $SLURM_PROCID' | sort
srun -n1 -N1 echo after
`)
	for _, n := range []string{"0", "1"} {
		eventually(t, "task "+n+" runs", func() bool { _, err := os.Stat(filepath.Join(s.project(), "up-"+n)); return err == nil })
	}
	s.ctld.kill()
	s.nodes[0].kill()
	s.nodes[1].kill()
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.nodes[0].start()
	s.nodes[1].start()
	s.ctld.start()
	d := s.wait(id)
	if endOf(d) != finished {
		t.Errorf("%s", describe(d))
	}
	for _, n := range []string{"0", "1"} {
		if got := lines(t, filepath.Join(s.project(), "up-"+n)); len(got) != 1 {
			t.Errorf("task %s ran %d times", n, len(got))
		}
	}
	out := strings.ReplaceAll(s.must("glog", id), s.nodeName(1), "NODE")
	out = strings.ReplaceAll(out, s.nodeName(0), "NODE")
	if diff := cmp.Diff("srun: error: NODE: task 1: Exited with exit code 1\ndone 0\ndone 1\nafter\n", out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got []string
	for _, x := range d.Steps {
		got = append(got, x.Name+" "+strings.Repeat("n", len(x.Nodes)))
		if x.Ended.IsZero() {
			t.Errorf("step %d has not ended", x.Number)
		}
	}
	if diff := cmp.Diff([]string{"sh nn", "echo n"}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	seen := s.slurm(nil, "", "sacct", "-n", "-P", "-j", id, "-o", "JobID,JobName,State,ExitCode,NTasks,NNodes")
	want := strings.ReplaceAll("ID|gbatch|COMPLETED|0:0||2\nID.batch|batch|COMPLETED|0:0|1|2\nID.0|sh|FAILED|1:0|2|2\nID.1|echo|COMPLETED|0:0|1|1\n", "ID", id)
	if diff := cmp.Diff(strings.ReplaceAll(want, "gbatch", d.Name), seen.out); diff != "" {
		t.Errorf("sacct (-want +got):\n%s%s", diff, seen.err)
	}
	// Each task counts for more than the millisecond that is told at least.
	if u := d.Steps[0].Use; u == nil || u.MaxRSSKiB == 0 || u.UserMS+u.SystemMS == 0 {
		t.Errorf("the first step has used %+v", u)
	}
}

// TestStepIsCancelled: a step is ended alone, and the script goes on.
func TestStepIsCancelled(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` --mem=64M
srun sleep 1000
echo code $?
srun echo next
`)
	eventually(t, "the step runs", func() bool { return len(s.job(id).Steps) == 1 })
	if r := s.slurm(nil, "", "squeue", "-s", "-h", "-o", "%i %j %A"); r.out != id+".batch batch 1\n"+id+".0 sleep 1\n" {
		t.Errorf("squeue -s: %v", r)
	}
	s.must("gcancel", id+".0")
	d := s.wait(id)
	out := s.must("glog", id)
	if endOf(d) != finished || !strings.Contains(out, "*** STEP "+id+".0 ON") || !strings.Contains(out, "code 143\nnext\n") {
		t.Errorf("%s\n%s", out, describe(d))
	}
	if out := s.must("gqueue", "show", id); !strings.Contains(out, id+".0   sleep") || !strings.Contains(out, "CANCELLED") || !strings.Contains(out, "COMPLETED") {
		t.Errorf("gqueue show:\n%s", out)
	}
	if r := s.run("gcancel", id+".7"); r.code == 0 || !strings.Contains(r.err, "no step 7") {
		t.Errorf("a step that never was: %v", r)
	}
}
