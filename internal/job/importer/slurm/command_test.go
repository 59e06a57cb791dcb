package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitSlurm(t *testing.T) {
	own, short := map[string]bool{"--wrap": true, "--hold": false, "--parsable": false}, map[string]string{"-H": "--hold"}
	type m = map[string]string
	for args, want := range map[string]Command{
		"":                           {Own: m{}},
		"-c 4 job.sh -c 5":           {Own: m{}, Options: []string{"-c", "4"}, Script: "job.sh", Args: []string{"-c", "5"}},
		"-c4 --mem=1G --parsable -H": {Own: m{"--parsable": "", "--hold": ""}, Options: []string{"-c4", "--mem=1G"}},
		"--wrap=a --exclusive b":     {Own: m{"--wrap": "a"}, Options: []string{"--exclusive"}, Script: "b", Args: []string{}},
		"--wrap a --nice b":          {Own: m{"--wrap": "a"}, Options: []string{"--nice"}, Script: "b", Args: []string{}},
		"--no-such x":                {Own: m{}, Options: []string{"--no-such"}, Script: "x", Args: []string{}},
		"-- -odd.sh a":               {Own: m{}, Script: "-odd.sh", Args: []string{"a"}},
		"--pars --nodel n1 --wra=a":  {Own: m{"--parsable": "", "--wrap": "a"}, Options: []string{"--nodel", "n1"}},
		"--cpus 5":                   {Own: m{}, Options: []string{"--cpus"}, Script: "5", Args: []string{}},
		"--time":                     {Own: m{}, Options: []string{"--time"}},
	} {
		if diff := cmp.Diff(want, Split(strings.Fields(args), own, short)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

// TestSlurmCommandLine: what the command line says wins over the script, and the
// variable's image counts where neither names one.
func TestSlurmCommandLine(t *testing.T) {
	script := "#!/bin/sh\n#SBATCH -J of-script -c 8\n#SBATCH --container-image=here\necho $1\n"
	for name, tc := range map[string]struct {
		o                Options
		job, image, last string
		cpus             int
	}{
		"script":       {Options{DefaultImage: "default"}, "of-script", "here", "of-script", 8},
		"command line": {Options{Line: []string{"-J", "mine", "-c2", "--image", "there"}, Args: []string{"one"}}, "mine", "there", "one", 2},
	} {
		sub, err := Parse([]byte(script), tc.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		first := append([]string{sub.Spec.Name}, sub.Spec.Request.Docker.Command.Argv...)
		if got := sub.Spec; got.Name != tc.job || !strings.Contains(got.Request.Docker.Image, tc.image) || got.Request.Resources.CPUs != tc.cpus || first[len(first)-1] != tc.last {
			t.Errorf("%s: job %s, image %s, %d cores, command %q", name, got.Name, got.Request.Docker.Image, got.Request.Resources.CPUs, first)
		}
	}
	if _, err := Parse([]byte(script), Options{Line: []string{"--bb=x"}}); err == nil || strings.Contains(err.Error(), "line") {
		t.Errorf("an option of the command line that is not supported: %v", err)
	}
}

// TestOwnOptionsInScripts: what a script and variables say to sbatch itself is for
// sbatch, and refused where something else reads them.
func TestOwnOptionsInScripts(t *testing.T) {
	script := []byte("#!/bin/sh\n#SBATCH --parsable -H\n#SBATCH --test-o --quiet\necho\n")
	env := func(name string) (string, bool) { return "1", name == "SBATCH_WAIT" }
	own := map[string]string{"--wrap": "given"}
	if _, err := Parse(script, Options{Own: own, Env: env, DefaultImage: "a"}); err != nil {
		t.Error(err)
	}
	want := map[string]string{"--wrap": "given", "--parsable": "", "--hold": "", "--test-only": "", "--quiet": "", "--wait": ""}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := Parse(script, Options{Env: env, DefaultImage: "a"})
	for _, name := range []string{"--parsable (line 2)", "-H (line 2)", "--test-only (line 3)"} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "--wait") {
			t.Errorf("no %q in %v", name, err)
		}
	}
}

// TestVariables: what SBATCH_ variables say wins over the script, and the command
// line over them.
func TestVariables(t *testing.T) {
	env := map[string]string{"SBATCH_JOB_NAME": "of-variable", "SBATCH_TIMELIMIT": "10", "SBATCH_REQUEUE": "", "SBATCH_MEM_PER_NODE": "2G", "SBATCH_NO_SUCH": "x"}
	o := Options{Line: []string{"--mem=3G"}, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH -J mine --image=a -t 5\ntrue\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	s := sub.Spec
	if s.Name != "of-variable" || s.Request.Scheduling.MaxDuration != 600 || !s.Request.Scheduling.Restartable || s.Request.Resources.CPUMemoryGB != 3 {
		t.Errorf("%+v", s)
	}
}

// TestShortened: a long name may be cut short while it is one option's alone, in
// lines of the script as on the command line.
func TestShortened(t *testing.T) {
	script := "#!/bin/sh\n#SBATCH --job-n of-script --cpus-per-t=3\n#SBATCH --err e.txt --out=o.txt\ntrue\n"
	sub, err := Parse([]byte(script), Options{Line: []string{"--cpus-per-t", "2", "--image", "there"}})
	if err != nil {
		t.Fatal(err)
	}
	type read struct {
		Name          string
		CPUs          int
		Output, Error string
	}
	got := read{sub.Spec.Name, sub.Spec.Request.Resources.CPUs, sub.Spec.Gbatch.Stdio.Output, sub.Spec.Gbatch.Stdio.Error}
	if diff := cmp.Diff(read{"of-script", 2, "o.txt", "e.txt"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, name := range Names() {
		if seen[name] {
			t.Errorf("%s is there twice, and can never be cut short", name)
		}
		seen[name] = true
	}
}
