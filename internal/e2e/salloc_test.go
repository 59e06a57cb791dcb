package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestSalloc gets two nodes, starts steps in them from a shell on this machine,
// copies a file to both, and gives them back with the shell's exit code.
func TestSalloc(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	env := []string{"GBATCH_SLURM_IMAGE=" + image, "SHELL=/bin/sh", "GREETING=hello there", "PATH=" + s.dir + ":/usr/bin:/bin"}
	s.slurm(env, "", "srun", "--help") // makes the links by which the shell finds them
	s.slurm(env, "", "sbcast", "--help")
	input, second := filepath.Join(s.dir, "input"), s.nodeName(1)
	if err := os.WriteFile(input, []byte("some input\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	script := `echo job $SLURM_JOB_ID with $SLURM_NNODES nodes and $SLURM_NTASKS tasks
srun sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS on node $SLURM_NODEID' | sort
echo one line | srun -n1 -N1 cat
srun -lN2 -n2 --ntasks-per-node=1 --export=ALL,GREETING sh -c 'echo $GREETING $SLURM_STEP_ID' | sort
srun -w ` + second + ` true && srun -n1 -w ` + second + ` sh -c 'echo node $SLURM_NODEID of $SLURM_NNODES'; srun -x ` + second + ` true || echo refused
srun -n1 -N1 sh -c 'exit 7'; echo code $?
sbcast ` + input + ` /tmp/copy; srun -n2 cat /tmp/copy
sbcast ` + input + ` /tmp/copy; echo again $?; sbcast -f ` + input + ` /tmp/copy; echo forced $?
srun -n1 -N1 sleep 1000 &
exit 3
`
	r := s.slurm(env, "", "salloc", "-N", "2", "-n", "4", "--mem=128M", "-t", "10", "sh", "-c", script)
	want := `job 1 with 2 nodes and 4 tasks
0 of 4 on node 0
1 of 4 on node 0
2 of 4 on node 1
3 of 4 on node 1
one line
0: hello there 2
1: hello there 2
node 0 of 1
refused
code 7
some input
some input
again 1
forced 0
`
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 3 {
		t.Errorf("code %d (-want +got):\n%s\n%s", r.code, diff, r.err)
	}
	for _, line := range []string{"salloc: Granted job allocation 1\n", "salloc: Relinquishing job allocation 1\n", "/tmp/copy: File exists"} {
		if !strings.Contains(r.err, line) {
			t.Errorf("no %q in\n%s", line, r.err)
		}
	}
	if diff := cmp.Diff(ended{job.Failed, job.ExitCode, 3}, endOf(s.wait("1"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := s.slurm(append(env, "SLURM_JOB_ID=1"), "", "srun", "true"); r.code == 0 || !strings.Contains(r.err, "Invalid job id specified") {
		t.Errorf("srun in an allocation that is over: %v", r)
	}
	// Without a shell it stays until it is cancelled, and takes steps by its number.
	if r := s.slurm(env, "", "salloc", "--no-shell", "-N2", "-n4", "--mem=64M"); r.code != 0 || !strings.Contains(r.err, "Granted job allocation 2") {
		t.Errorf("salloc --no-shell: %v", r)
	}
	if r := s.slurm(env, "", "srun", "--jobid", "2", "echo", "in it"); r.out != "in it\nin it\n" {
		t.Errorf("srun --jobid, one task on each node: %v", r)
	}
	n1, n2 := s.nodeName(0), s.nodeName(1)
	for options, want := range map[string]string{"-w " + n2: n2, "-n2 -w " + n2: n2 + " " + n2, "-N2 -w " + n2: n1 + " " + n2, "-x " + n1: n2} {
		r := s.slurm(env, "", "srun", slices.Concat([]string{"--jobid", "2"}, strings.Fields(options), []string{"sh", "-c", "echo $SLURMD_NODENAME"})...)
		if got := strings.Fields(r.out); strings.Join(slices.Sorted(slices.Values(got)), " ") != want {
			t.Errorf("srun --jobid %s: %v, want on %s", options, r, want)
		}
	}
	s.slurm(env, "", "scancel", "2")
	if d := s.wait("2"); d.State != job.Cancelled {
		t.Errorf("cancelled:\n%s", describe(d))
	}
	for line, want := range map[string]string{"--array=1-3": "sbatch", "--nodes=many": "--nodes", "--no-such": "--no-such", "-KMOON true": "kill-command"} {
		if r := s.slurm(env, "", "salloc", strings.Fields(line)...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("salloc %s: %v", line, r)
		}
	}
}

// TestSallocEnds: the command of an allocation that is cancelled gets the signal of
// -K, and one whose gctld and gnoded are killed goes on, though not the step that ran.
func TestSallocEnds(t *testing.T) {
	s := newSite(t, siteOptions{})
	env := []string{"GBATCH_SLURM_IMAGE=" + image, "PATH=" + s.dir + ":/usr/bin:/bin", "AT=" + s.dir}
	s.slurm(env, "", "srun", "--help") // makes the links by which the shell finds them
	s.slurm(env, "", "scancel", "--help")
	r := s.slurm(env, "", "salloc", "--mem=64M", "-KUSR1", "sh", "-c", "trap 'echo told; exit 9' USR1; scancel $SLURM_JOB_ID; while :; do sleep 0.1; done")
	if r.out != "told\n" || r.code != 9 || !strings.Contains(r.err, "has been revoked") {
		t.Errorf("an allocation that is cancelled: %v", r)
	}
	script := `srun sh -c 'echo runs; sleep 1000' > $AT/step & step=$!
while [ ! -e $AT/go ]; do sleep 0.1; done
wait $step || echo the step was lost
srun echo after
srun -n1 sh -c 'trap : TERM; echo up; sleep 1000' > $AT/up & step=$!
until [ -s $AT/up ]; do sleep 0.1; done
kill $step; wait $step; echo by TERM $?
`
	done := make(chan result, 1)
	go func() { done <- s.slurm(env, "", "salloc", "--mem=64M", "-n2", "sh", "-c", script) }() // received below
	eventually(t, "a step runs", func() bool { b, _ := os.ReadFile(s.dir + "/step"); return string(b) == "runs\nruns\n" })
	s.ctld.kill()
	s.nodes[0].kill()
	s.ctld.start()
	s.nodes[0].start()
	s.waitNodes("up", 1)
	if err := os.WriteFile(s.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.out != "the step was lost\nafter\nafter\nby TERM 137\n" || r.code != 0 {
		t.Errorf("after daemons were killed: %v", r)
	}
	if d := s.wait("2"); endOf(d) != finished {
		t.Errorf("%s", describe(d))
	}
}

// TestSrunAlone: outside of a job srun makes one, whose tasks read and write here,
// and which ends with them.
func TestSrunAlone(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	env := []string{"GBATCH_SLURM_IMAGE=" + image}
	r := s.slurm(env, "typed\n", "srun", "-N2", "-n", "2", "--mem=64M", "-J", "greet", "-lu", "sh", "-c", "read x; echo $x $SLURM_PROCID; echo bad >&2; exit $((SLURM_PROCID * 4))")
	out := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 4 || len(out) != 2 || !strings.Contains(r.out, "1: typed 1\n") || !strings.Contains(r.err, "0: bad\n") || !strings.Contains(r.err, "Exited with exit code 4") {
		t.Errorf("%v", r)
	}
	if d := s.wait("1"); d.Name != "greet" || d.NumNodes != 2 || d.State != job.Failed || len(d.Steps) != 1 {
		t.Errorf("%s", describe(d))
	}
	for line, want := range map[string]string{"--no-such=3 true": "unrecognized option '--no-such=3'", "-n": "requires an argument", "-n 2": "no command", "--bcast true": "--bcast"} {
		if r := s.slurm(env, "", "srun", strings.Fields(line)...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("srun %s: %v", line, r)
		}
	}
	tm := s.program(filepath.Join(s.dir, "srun"), 33, 77, "--pty", "--mem=64M", "--container-image="+image, "sh")
	tm.types("stty size; tty; echo $SLURM_JOB_ID-$SLURM_STEP_ID\n")
	tm.shows("33 77")
	tm.shows("/dev/pts/")
	tm.shows(`\d-0`)
	tm.types("exit 5\n")
	if code := tm.code(); code != 5 {
		t.Errorf("the shell's code is %d", code)
	}
}
