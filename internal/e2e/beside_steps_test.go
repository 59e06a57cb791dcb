package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// besideStepsEnv names the file for the table of TestStepsBesideSlurm; without it, it
// is not run.
const besideStepsEnv = "GBATCH_BENCH_STEPS"

// besideSteps are what each srun of it starts, as it is called by testdata/steps.
var besideSteps = []struct{ name, options, task string }{
	{"1 x a program that ends at once", "-n 1", "task"},
	{"64 x the same", "-n 64", "task"},
	{"64 x PMIx_Init, a fence of all, PMIx_Finalize", "-n 64 --mpi=pmix", "pmix"},
}

// TestStepsBesideSlurm measures how soon tasks of srun are there, in a job of gbatch's
// and in one of Slurm's, in turns on this machine. It asserts nothing of the times:
// scripts/bench-steps prints them.
func TestStepsBesideSlurm(t *testing.T) {
	table := os.Getenv(besideStepsEnv)
	if table == "" {
		t.Skip("a comparison, not a test: make bench-steps")
	}
	program := besideStepsProgram(t)
	ref := hostImage(t, "steps", map[string]string{"app/steps": program}, []string{"/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix"})
	s := newSite(t, siteOptions{})
	slurm := startSlurm(t, 100)
	var lines []string
	for _, b := range besideSteps {
		var ours, theirs []stepRun
		for range besideRounds {
			ours = append(ours, s.stepRuns(ref, b.options, b.task)...)
			theirs = append(theirs, slurm.stepRuns(t, program, b.options, b.task)...)
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |", b.name, describeSteps(theirs), describeSteps(ours)))
	}
	text := "| what one srun starts | Slurm | gbatch |\n|---|---|---|\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// besideStepsProgram is testdata/steps, made of this machine's PMIx.
func besideStepsProgram(t *testing.T) string {
	t.Helper()
	program, lib := filepath.Join(t.TempDir(), "steps"), "/usr/lib/x86_64-linux-gnu/pmix2/"
	if _, err := os.Stat(lib + "include/pmix.h"); err != nil {
		t.Skip("NOT MEASURED: there is no pmix.h here: apt-get install libpmix-dev")
	}
	if out, err := exec.Command("cc", "-O2", "-I"+lib+"include", "testdata/steps/steps.c", "-o", program, "-L"+lib+"lib", "-lpmix").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	return program
}

// stepRun is one srun's times in ms since its begin.
type stepRun struct{ first, began, ready, over float64 }

// besideStepsRuns is how often a job calls srun for each line.
const besideStepsRuns = 5

// readSteps reads what testdata/steps prints. The first srun of a job begins what
// takes tasks there: it is not counted.
func readSteps(t *testing.T, out, options string) (list []stepRun) {
	t.Helper()
	for line := range strings.Lines(out) {
		var r stepRun
		var tasks, code int
		if _, err := fmt.Sscanf(line, "run tasks=%d first=%f began=%f ready=%f over=%f code=%d", &tasks, &r.first, &r.began, &r.ready, &r.over, &code); err != nil || code != 0 || !strings.HasPrefix(options+" ", fmt.Sprintf("-n %d ", tasks)) {
			t.Fatalf("srun %s: %q\n%s", options, line, out)
		}
		list = append(list, r)
	}
	if len(list) != besideStepsRuns+1 {
		t.Fatalf("srun %s ran %d times:\n%s", options, len(list), out)
	}
	return list[1:]
}

func (s *site) stepRuns(ref, options, task string) []stepRun {
	s.t.Helper()
	id := s.file(fmt.Sprintf("#!/bin/sh\n#SBATCH --image=%s -N 1 -c 2 --mem=1G\n/app/steps run %d srun -O -N 1 %s /app/steps %s 2>&1\n", ref, besideStepsRuns+1, options, task))
	if d := s.wait(id); endOf(d) != finished {
		s.t.Fatalf("%s\n%s", s.must("glog", id), describe(d))
	}
	return readSteps(s.t, s.must("glog", id), options)
}

func (c *competitor) stepRuns(t *testing.T, program, options, task string) []stepRun {
	t.Helper()
	dir := t.TempDir()
	script, out := filepath.Join(dir, "steps.sh"), filepath.Join(dir, "out")
	text := fmt.Sprintf("#!/bin/sh\n%s run %d srun %s %s %s 2>&1\n", program, besideStepsRuns+1, options, program, task)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	c.must(t, []string{"sbatch", "--wait", "-n", "64", "--output=" + out, "--chdir=/tmp", script})
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// Slurm's steps may wait for the end of the one before, and say so.
	return readSteps(t, slurmWaits.ReplaceAllString(string(body), ""), options)
}

var slurmWaits = regexp.MustCompile(`(?m)^srun: (Job \d+ step creation temporarily disabled, retrying \(.*\)|Step created for .*)\n`)

// describeSteps are the medians, of the last task's readiness with its bounds.
func describeSteps(list []stepRun) string {
	of := func(f func(stepRun) float64) (all []float64) {
		for _, r := range list {
			all = append(all, f(r))
		}
		return slices.Sorted(slices.Values(all))
	}
	ready := of(func(r stepRun) float64 { return r.ready })
	return fmt.Sprintf("last task ready after %.0f ms (%.0f to %.0f); main of the first %.0f ms, of the last %.0f ms; srun over %.0f ms", median(ready), ready[0], ready[len(ready)-1],
		median(of(func(r stepRun) float64 { return r.first })), median(of(func(r stepRun) float64 { return r.began })), median(of(func(r stepRun) float64 { return r.over })))
}
