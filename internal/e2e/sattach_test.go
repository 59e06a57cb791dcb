package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestSattach reads along a step of two tasks on two nodes, and writes what they
// wait for.
func TestSattach(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	env := []string{"GBATCH_SLURM_IMAGE=" + image}
	const script = `mkfifo /tmp/f; exec 3<>/tmp/f
srun -n2 -N2 sh -c 'read x; echo task $SLURM_PROCID got $x; exit $SLURM_PROCID' <&3
echo steps ended`
	if r := s.slurm(env, "", "sbatch", "-N2", "-n2", "--mem=128M", "-t", "10", "--wrap", script); r.code != 0 {
		t.Fatal(r.err)
	}
	var layout result
	eventually(t, "the step runs", func() bool {
		layout = s.slurm(env, "", "sattach", "--layout", "1.0")
		return layout.code == 0
	})
	lines := strings.Split(layout.out, "\n")
	if len(lines) < 5 || !strings.HasPrefix(lines[1], "\t2 tasks, 2 nodes (") || !strings.HasSuffix(lines[4], ", 1 task(s): 1 ") {
		t.Errorf("layout:\n%s", layout.out)
	}
	for step, want := range map[string]string{"1.7": "step 7 of job 1 does not run", "1.batch": "glog -f 1", "1": "need a job step"} {
		if r := s.slurm(env, "", "sattach", step); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("sattach %s: code %d, no %q in %s", step, r.code, want, r.err)
		}
	}
	r := s.slurm(env, "hello\n", "sattach", "-l", "1.0")
	got := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(got) == 2 && got[0] > got[1] {
		got[0], got[1] = got[1], got[0]
	}
	if diff := cmp.Diff([]string{"0: task 0 got hello", "1: task 1 got hello"}, got); diff != "" || r.code != 1 {
		t.Errorf("code %d (-want +got):\n%s\n%s", r.code, diff, r.err)
	}
	if want := "sattach: error: task 1 exited with exit code 1\n"; !strings.Contains(r.err, want) {
		t.Errorf("no %q in %q", want, r.err)
	}
	if diff := cmp.Diff(ended{job.Finished, "", 0}, endOf(s.wait("1"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log := s.run("glog", "1").out; !strings.Contains(log, "task 0 got hello") || !strings.Contains(log, "steps ended") {
		t.Errorf("the script's own output:\n%s", log)
	}
}
