package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
)

// TestWaitedCode: sbatch that waited ends with the program's code, and with 1
// where the program did not end by itself.
func TestWaitedCode(t *testing.T) {
	code := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		job  api.Job
		want int
	}{
		"finished":  {api.Job{State: job.Finished, ExitCode: code(0)}, 0},
		"code":      {api.Job{State: job.Failed, Reason: string(job.ExitCode), ExitCode: code(7)}, 7},
		"signal":    {api.Job{State: job.Failed, Reason: string(job.Signal), ExitCode: code(137)}, 1},
		"no memory": {api.Job{State: job.Failed, Reason: string(job.OOM), ExitCode: code(137)}, 1},
		"limit":     {api.Job{State: job.Failed, Reason: string(job.MaxRuntime), ExitCode: code(143)}, 1},
		"answered":  {api.Job{State: job.Failed, Reason: string(job.MaxRuntime), ExitCode: code(5)}, 5},
		"trapped":   {api.Job{State: job.Failed, Reason: string(job.MaxRuntime), ExitCode: code(0)}, 0},
		"cancelled": {api.Job{State: job.Cancelled, ExitCode: code(143)}, 1},
		"never ran": {api.Job{State: job.Failed}, 1},
	} {
		if got := waitedCode(&tc.job); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestSubmittedFile: a job keeps the file that its script was read from; one of
// standard input or --wrap has none.
func TestSubmittedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.sh")
	const script = "#!/bin/sh\n#SBATCH --image=debian --mem=1G\ntrue\n"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{{[]string{file, "a"}, file}, {[]string{"-"}, ""}, {nil, ""}, {[]string{"--image=debian", "--wrap", "true"}, ""}} {
		got := "nothing"
		b := clitest.Start(t, &clitest.Fake{Submit: func(req *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
			sub, err := job.Parse(req.Job)
			if err != nil {
				t.Error(err)
				return &api.SubmitResponse{}, nil
			}
			got = sub.Spec.Gbatch.Launch.File
			return &api.SubmitResponse{Number: 1}, nil
		}})
		b.App.In = strings.NewReader(script)
		if code := play0(b.App, "sbatch", tc.args); code != 0 || got != tc.want {
			t.Errorf("sbatch %q: ended with %d (%s), file %q, want %q", tc.args, code, b.Err.String(), got, tc.want)
		}
	}
}

// TestSubmittedCluster: whoever names the cluster is told it again, as Slurm's sbatch
// does, and one that is not there gets no job.
func TestSubmittedCluster(t *testing.T) {
	for _, tc := range []struct{ script, args, out, err string }{
		{"", "--parsable", "7\n", ""},
		{"", "-M gbatch", "Submitted batch job 7 on cluster gbatch\n", ""},
		{"", "--clusters=all,gbatch --parsable", "7;gbatch\n", ""},
		{"#SBATCH --cluster=gbatch\n", "--parsable", "7;gbatch\n", ""},
		{"#SBATCH -M gbatch\n", "-Mgbatch,other", "", `cluster "other" is not known: there is gbatch; choose the controller with GBATCH_CONTROLLER`},
	} {
		b := clitest.Start(t, &clitest.Fake{Submit: func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
			return &api.SubmitResponse{Number: 7}, nil
		}})
		b.App.In = strings.NewReader("#!/bin/sh\n#SBATCH --image=debian --mem=1G\n" + tc.script + "true\n")
		code := play0(b.App, "sbatch", strings.Fields(tc.args))
		if out := b.Out.String(); out != tc.out || (code == 0) != (tc.err == "") || !strings.Contains(b.Err.String(), tc.err) {
			t.Errorf("%q, sbatch %s: ended with %d, printed %q and %q, want %q and %q", tc.script, tc.args, code, out, b.Err.String(), tc.out, tc.err)
		}
	}
}
