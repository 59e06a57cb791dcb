package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSubmitAndWait: who waits for a batch script ends with its exit code, and
// for an array with the highest.
func TestSubmitAndWait(t *testing.T) {
	s, _, _, sbatch := home(t)
	for line, want := range map[string]int{"exit 0": 0, "exit 7": 7, "srun sh -c \"exit 5\"": 5} {
		if r := sbatch(nil, "", "-W", "--wrap", line); r.code != want {
			t.Errorf("sbatch -W of %q: %v, want %d", line, r, want)
		}
	}
	if r := sbatch(nil, "", "-W", "-a", "0-3", "--wrap", "exit $SLURM_ARRAY_TASK_ID"); r.code != 3 {
		t.Errorf("sbatch -W of an array: %v, want 3", r)
	}
	if r := s.run("gsubmit", "-W", "--wrap", "exit 7", "--mem=64M", "--parsable"); r.code != 7 {
		t.Errorf("gsubmit -W: %v, want 7", r)
	}
}

// TestSubmitOptions: gsubmit gives a script what sbatch does, and srun in it
// takes the variables for its own options.
func TestSubmitOptions(t *testing.T) {
	s, _, _, _ := home(t)
	id := strings.TrimSpace(s.must("gsubmit", "--parsable", "-n", "4", "-c", "1", "--mem-per-cpu=64M", "-m", "plane=2", "--hint=nomultithread", "--export=NONE", "--comment", "as at home",
		"--wrap", "A=1; export A; env | grep -E 'SLURM_(NTASKS|DIST|HINT|THREADS|MEM|EXPORT|GPUS|CPUS_ON|JOB_NAME)' | sort; srun sh -c 'echo task $A'"))
	s.well(id)
	want := `SLURM_CPUS_ON_NODE=4
SLURM_DISTRIBUTION=plane
SLURM_DIST_PLANESIZE=2
SLURM_EXPORT_ENV=NONE
SLURM_HINT=nomultithread
SLURM_JOB_NAME=wrap
SLURM_MEM_PER_CPU=64
SLURM_NTASKS=4
SLURM_THREADS_PER_CORE=1
` + strings.Repeat("task\n", 4)
	if diff := cmp.Diff(want, s.must("glog", id)); diff != "" {
		t.Errorf("what the script said (-want +got):\n%s", diff)
	}
	several := strings.Fields(s.must("gsubmit", "--parsable", "--mem=64M", s.write(doc{command: []string{"true"}}.json()), s.write(doc{command: []string{"true"}}.json())))
	if len(several) != 2 {
		t.Fatalf("two files are the jobs %v", several)
	}
	for _, id := range several {
		s.well(id)
	}
}
