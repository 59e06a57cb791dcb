package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGNUParallel: GNU parallel, as it is, feeds steps of an allocation, and jobs of
// their own.
func TestGNUParallel(t *testing.T) {
	if _, err := exec.LookPath("parallel"); err != nil {
		t.Skip("NOT TESTED: there is no GNU parallel here: apt-get install parallel")
	}
	s := newSite(t, siteOptions{nodes: 2})
	env := []string{"GBATCH_SLURM_IMAGE=" + image, "PATH=" + s.dir + ":/usr/bin:/bin", "HOME=" + s.dir, "SHELL=/bin/sh"}
	s.slurm(env, "", "srun", "--help") // makes the link by which it is found
	r := s.slurm(env, "", "salloc", "-Q", "-N", "2", "-n", "4", "--mem=128M", "parallel", "--will-cite", "-k", "-j4", "srun -N1 -n1 --exact sh -c 'echo {} of $SLURM_NTASKS; exit $(({} / 6))'", ":::", "1", "2", "3", "4", "5", "6")
	want := "1 of 1\n2 of 1\n3 of 1\n4 of 1\n5 of 1\n6 of 1\n"
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 1 { // how many failed
		t.Errorf("code %d (-want +got):\n%s\n%s", r.code, diff, r.err)
	}
	if d := s.wait("1"); len(d.Steps) != 6 {
		t.Errorf("%d steps:\n%s", len(d.Steps), describe(d))
	}
	cmd := exec.Command("parallel", "--will-cite", "-k", "-j3", "srun --mem=64M echo job {}", ":::", "a", "b", "c")
	cmd.Env = append(append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket()), env...)
	cmd.Stdin = strings.NewReader("")
	if r := execute(cmd); r.out != "job a\njob b\njob c\n" || r.code != 0 {
		t.Errorf("jobs of their own: %v", r)
	}
}
