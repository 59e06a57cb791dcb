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

// TestSrun: a script on two nodes starts steps in many ways; what each printed
// and how it ended is what Slurm's srun would have done.
func TestSrun(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	script := `#!/bin/sh
#SBATCH --image=` + image + ` -N 2 -n 4 -c 1 --mem=128M --container-mounts=/project
cd /project
srun sh -c 'echo $SLURM_PROCID/$SLURM_NTASKS local $SLURM_LOCALID node $SLURM_NODEID of $SLURM_NNODES rank $GBATCH_RANK step $SLURM_STEP_ID' | sort
echo == once
srun -n1 -N1 echo once
echo == label
srun -l -n 2 -N 2 echo hi | sort
echo == cyclic
srun -m cyclic sh -c 'echo $SLURM_PROCID on $SLURM_NODEID' | sort
echo == codes
srun -n 2 -N 1 sh -c 'exit $((SLURM_PROCID + 3))'; echo code $?
srun -n1 -N1 sh -c 'kill -SEGV $$'; echo code $?
srun -n1 -N1 no-such-program; echo code $?
srun --no-such-option true; echo code $?
srun -n 64 true; echo code $?
echo == files
srun -n 4 -o 'out-%j-%2t-%n' sh -c 'echo of $SLURM_PROCID; echo err >&2'
cat out-*
echo == input
echo one line | srun -n 2 -N 2 cat
echo == multi
printf '0 echo first %%t\n* echo other %%t\n' > multi
srun -n 3 --multi-prog multi | sort
echo == together
for i in 1 2 3 4; do srun -n1 -N1 --exact sh -c 'echo done' & done; wait
echo == names
scontrol show hostnames $SLURM_JOB_NODELIST | wc -l
for h in $(scontrol show hostnames $SLURM_JOB_NODELIST); do grep -q $h /etc/hosts || echo $h has no address; done
`
	id := s.file(script)
	d := s.wait(id)
	if endOf(d) != finished {
		t.Errorf("%s", describe(d))
	}
	text := strings.NewReplacer(s.nodeName(0), "NODE", s.nodeName(1), "NODE").Replace(s.must("glog", id))
	if diff := cmp.Diff(srunSaid, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const srunSaid = `0/4 local 0 node 0 of 2 rank 0 step 0
1/4 local 1 node 0 of 2 rank 0 step 0
2/4 local 0 node 1 of 2 rank 1 step 0
3/4 local 1 node 1 of 2 rank 1 step 0
== once
once
== label
0: hi
1: hi
== cyclic
0 on 0
1 on 1
2 on 0
3 on 1
== codes
srun: error: NODE: task 0: Exited with exit code 3
srun: error: NODE: task 1: Exited with exit code 4
code 4
srun: error: NODE: task 0: Segmentation fault
code 139
slurmstepd: error: execve(): no-such-program: No such file or directory
srun: error: NODE: task 0: Exited with exit code 2
code 2
srun: unrecognized option '--no-such-option'
Try "srun --help" for more information
code 255
srun: error: Unable to create step for job 1: More processors requested than permitted
code 1
== files
of 0
err
of 1
err
of 2
err
of 3
err
== input
one line
one line
== multi
first 0
other 1
other 2
== together
done
done
done
done
== names
2
`

// TestScriptSignals: signals that a script sends itself do what they do under Slurm, a script is not
// its container's first process, and what it leaves is ended.
func TestScriptSignals(t *testing.T) {
	s := newSite(t, siteOptions{})
	cases := map[string]struct {
		script, code string
		want         ended
		log          string
	}{
		"term":     {`kill $$; sleep 1000`, "0:15", ended{job.Failed, job.Signal, 143}, ""},
		"subshell": {`(kill -KILL $$); sleep 1000`, "0:9", ended{job.Failed, job.Signal, 137}, ""},
		"trap":     {`trap 'echo told; exit 7' TERM; kill $$; sleep 1000`, "7:0", ended{job.Failed, job.ExitCode, 7}, "told\n"},
		"step":     {`srun -n1 sh -c 'kill $$'; echo code $?; exit 0`, "0:0", finished, "code 143\n"},
		"left":     {`(sleep 1000 &); setsid sleep 1000 & [ $$ != 1 ] && [ "$(ps -o ppid,pid | grep " $$\$" | grep -c ' 1 ')" = 1 ] && echo below`, "0:0", finished, "below\n"},
	}
	ids := map[string]string{}
	for name, tc := range cases {
		ids[name] = s.file("#!/bin/sh\n#SBATCH --image=" + image + " --mem=64M\n" + tc.script + "\n")
	}
	for name, tc := range cases {
		d := s.wait(ids[name])
		if diff := cmp.Diff(tc.want, endOf(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, describe(d))
		}
		if log := s.must("glog", ids[name]); !strings.HasSuffix(log, tc.log) {
			t.Errorf("%s said %q, want %q", name, log, tc.log)
		}
		if got := s.slurm(nil, "", "sacct", "-X", "-n", "-P", "-j", ids[name], "-o", "ExitCode"); strings.TrimSpace(got.out) != tc.code {
			t.Errorf("%s: exit code %q, want %q", name, got.out, tc.code)
		}
	}
}
