package srun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gbatch/internal/launch"
)

func TestParse(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for line, want := range map[string]options{
		"hostname -f":                           {args: []string{"hostname", "-f"}},
		"-n4 -N 2 prog":                         {q: launch.Request{Tasks: 4, Nodes: 2, MaxNodes: 2}, args: []string{"prog"}},
		"-n 4 --nodes=1-2 prog":                 {q: launch.Request{Tasks: 4, Nodes: 1, MaxNodes: 2}, args: []string{"prog"}},
		"--ntasks 4 prog -n 5":                  {q: launch.Request{Tasks: 4}, args: []string{"prog", "-n", "5"}},
		"-lun1 -K0 -- -odd":                     {q: launch.Request{Tasks: 1}, label: true, unbuffer: true, args: []string{"-odd"}},
		"-K -c2 prog":                           {q: launch.Request{CPUs: 2}, killBad: true, args: []string{"prog"}},
		"--kill-on-bad-exit p":                  {killBad: true, args: []string{"p"}},
		"--ntasks-per-n 3 p":                    {q: launch.Request{PerNode: 3}, args: []string{"p"}},
		"--exclusive p":                         {q: launch.Request{Exact: true}, args: []string{"p"}},
		"-w n[1-2],m -r1 p":                     {q: launch.Request{On: []string{"n1", "n2", "m"}, Relative: 1}, args: []string{"p"}},
		"--gres=gpu:a100:2 p":                   {q: launch.Request{GPUsPerNode: new(2)}, args: []string{"p"}},
		"-t 1-2:30 -W5 p":                       {limitS: 95400, waitS: 5, args: []string{"p"}},
		"-m block,nopack p":                     {q: launch.Request{Distribution: "block"}, args: []string{"p"}},
		"-m cyclic:block p":                     {q: launch.Request{Distribution: "cyclic"}, args: []string{"p"}},
		"--mpi=pmi2 --pty p":                    {mpi: "pmi2", pty: true, args: []string{"p"}},
		"--mpi=pmix_v4 p":                       {mpi: "pmix", args: []string{"p"}},
		"--mpi=none p":                          {mpi: "none", args: []string{"p"}},
		"--cpu_bind=core p":                     {q: launch.Request{CPUBind: "cores"}, args: []string{"p"}},
		"--cpu_bind=none p":                     {q: launch.Request{CPUBind: "none"}, args: []string{"p"}},
		"--cpu-bind=v,mask_cpu=0xfe,0xfe00 p":   {q: launch.Request{CPUBind: "cores"}, args: []string{"p"}},
		"--cpu-bind map_cpu:1,2 --resv-ports p": {q: launch.Request{CPUBind: "cores"}, args: []string{"p"}},
		"--tasks=2 p":                           {q: launch.Request{PerNode: 2}, args: []string{"p"}},
		"--cpu-bind=verbose,cores --mem=2G -p gpu --hint=nomultithread p": {q: launch.Request{CPUBind: "cores"}, args: []string{"p"}},
	} {
		got, err := parse(strings.Fields(line), none)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		want.in, want.out, want.bare = "all", "all", true
		if diff := cmp.Diff(&want, got, cmp.AllowUnexported(options{}, container{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	for line, want := range map[string]string{
		"--no-such x":     "unrecognized option '--no-such'",
		"--n x":           "option '--n' is ambiguous",
		"-y x":            "invalid option -- 'y'",
		"-n x p":          "-n x: want a number above 0",
		"--ntasks":        "option '--ntasks' requires an argument",
		"--label=x p":     "option '--label' doesn't allow an argument",
		"--mpi=cray p":    "--mpi=cray: want none, pmi2 or pmix",
		"--mem=lots p":    "--mem=lots: want a number of MiB, or a number and K, M, G or T",
		"--bcast=/tmp/x":  "--bcast=/tmp/x: is not supported: put the program where all ranks see it, as below project storage",
		"-m arbitrary p":  "-m arbitrary: want block, cyclic or plane=NUMBER",
		"-n1 p : -n1 q":   PartsRefused,
		"-n1 -- p a : q":  PartsRefused,
		"--het-group=0 p": "--het-group=0: is not supported: all nodes of a job are alike",
	} {
		if _, err := parse(strings.Fields(line), none); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	env := map[string]string{"SLURM_NTASKS": "6", "SLURM_LABELIO": "1", "SLURM_KILL_BAD_EXIT": "0"}
	o, err := parse([]string{"p"}, func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil || o.q.Tasks != 6 || !o.label || o.killBad {
		t.Errorf("by variables: %+v, %v", o, err)
	}
}

func TestMulti(t *testing.T) {
	got, err := parseMulti("# who does what\n0-1,3 a %t %o\n1\tb\n* c %o\n", nil)
	if diff := cmp.Diff(map[int]string{0: "a %t 0", 1: "a %t 1", 3: "a %t 2", launch.AnyTask: "c %o"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"0", "x prog", "3-1 prog", "0-99999999 prog"} {
		if _, err := parseMulti(bad, nil); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
