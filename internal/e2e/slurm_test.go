package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// slurm runs one of Slurm's names, as a tool would.
func (s *site) slurm(env []string, input, name string, args ...string) result {
	s.t.Helper()
	link := filepath.Join(s.dir, name)
	if _, err := os.Lstat(link); err != nil {
		if err := os.Symlink(filepath.Join(bin, "gslurm"), link); err != nil {
			s.t.Fatal(err)
		}
	}
	cmd := exec.Command(link, args...)
	cmd.Env = append(append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket()), env...)
	cmd.Stdin = strings.NewReader(input)
	return execute(cmd)
}

// TestSlurmNames submits, lists, cancels and accounts for jobs as scripts for
// Slurm do.
func TestSlurmNames(t *testing.T) {
	s := newSite(t, siteOptions{})
	env := []string{"GBATCH_SLURM_IMAGE=" + image}
	ok := func(name string, args ...string) string {
		t.Helper()
		r := s.slurm(env, "", name, args...)
		if r.code != 0 {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), r)
		}
		return r.out
	}
	script := filepath.Join(s.dir, "job.sh")
	text := "#!/bin/sh\n#SBATCH -J scripted -c 8 --mem=2G\n#SBATCH -t 10\necho \"$1 $2 on $SLURM_JOB_NAME\"\nexit 3\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := ok("sbatch", "-c2", "--time", "5", script, "two words", "more"); out != "Submitted batch job 1\n" {
		t.Errorf("sbatch: %q", out)
	}
	d := s.wait("1")
	if diff := cmp.Diff(ended{job.Failed, job.ExitCode, 3}, endOf(d)); diff != "" || d.CPUs != 2 || d.LimitS != 300 {
		t.Errorf("%d cores, %d s, end (-want +got):\n%s", d.CPUs, d.LimitS, diff)
	}
	if log := s.must("glog", "1"); log != "two words more on scripted\n" {
		t.Errorf("the script said %q", log)
	}
	if out := ok("sbatch", "--parsable", "--wrap", idleShell, "-J", "wrapped", "-c", "8", "--mem=4G"); out != "2\n" {
		t.Errorf("sbatch --parsable: %q", out)
	}
	s.waitRunning("2")
	if r := s.slurm(env, text, "sbatch", "-H", "--mem=1G", "-c1"); r.out != "Submitted batch job 3\n" {
		t.Errorf("sbatch from standard input: %v", r)
	}
	for args, want := range map[string]string{
		"-h -o %i|%T|%j -j 2":            "2|RUNNING|wrapped\n",
		"-h -o %i|%t --me":               "2|R\n3|PD\n",
		"-h -o %A -t PD,CF":              "3\n",
		"-h -o %i -n wrapped -u root":    "2\n",
		"-h -o %i -j 1":                  "",
		"--noheader --format=%i -t F -a": "1\n",
		"-o %i|%N -j2":                   "JOBID|NODELIST\n2|" + s.nodeName(0) + "\n",
	} {
		if out := ok("squeue", strings.Fields(args)...); out != want {
			t.Errorf("squeue %s: %q, want %q", args, out, want)
		}
	}
	if out := ok("sinfo", "-h", "-o", "%P %D %t %N"); out != "1* 1 alloc "+s.nodeName(0)+"\n" {
		t.Errorf("sinfo: %q", out)
	}
	if out := ok("sinfo"); !strings.HasPrefix(out, "PARTITION AVAIL") {
		t.Errorf("sinfo: %q", out)
	}
	ok("scancel", "-n", "wrapped", "-u", "root")
	s.wait("2")
	ok("scancel", "3")
	s.wait("3")
	want := "1|FAILED|3:0\n2|CANCELLED|0:0\n3|CANCELLED|0:0\n"
	for _, args := range [][]string{{"-j", "1,2,3"}, {"-S", "now-1hour"}} {
		if out := ok("sacct", append(args, "-X", "-n", "-P", "--format=JobID,State,ExitCode")...); out != want {
			t.Errorf("sacct %v: %q, want %q", args, out, want)
		}
	}
	if out := ok("sacct", "-j", "1", "-o", "jobid,elapsed,maxrss"); !strings.HasPrefix(out, "JobID           Elapsed     MaxRSS \n------------ ---------- ---------- \n1") {
		t.Errorf("sacct: %q", out)
	}

	// What is not played says what to use instead.
	for _, c := range [][]string{
		{"GBATCH_SLURM_IMAGE", "sbatch", "--wrap", "true"}, {"--container-image=NAME", "srun", "hostname"}, {"gbatch", "sbatch", "--bb=x", "--wrap", "true"}, {"--tim", "sbatch", "--tim=5", "--wrap", "true"},
		{"watch", "squeue", "-i", "5"}, {"gadm reservations", "sinfo", "-T"}, {"Invalid field", "sacct", "-o", "JobID,Moon"}, {"Invalid job id", "squeue", "-j", "999"},
		{"scancel 12", "scancel"}, {"--time", "sbatch", "--wrap", "true"},
	} {
		var extra []string
		if c[0] == "--time" {
			extra = []string{"SBATCH_TIMELIMIT=soon"}
		}
		if r := s.slurm(extra, "", c[1], c[2:]...); r.code == 0 || !strings.Contains(r.err, c[0]) || r.out != "" {
			t.Errorf("%s: %v; want an error with %q", strings.Join(c[1:], " "), r, c[0])
		}
	}
}

// idleShell runs until it is told to end.
const idleShell = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
