package slurm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// TestFilesAndTasks: where a script writes, which tools look for by scontrol show job,
// and how many tasks it asked for, are told as Slurm does.
func TestFilesAndTasks(t *testing.T) {
	spec := func(s job.Stdio, l *job.Launch) *job.Spec {
		d := job.Docker{WorkingDir: "/home/ann/run", Storage: []job.Storage{{HostPath: "/home/ann", ContainerPath: "/home/ann"}}}
		return &job.Spec{Name: "train", Request: job.Request{Docker: d}, Gbatch: &job.Gbatch{Stdio: &s, Launch: l}}
	}
	type told struct{ Output, Errors, Input, Tasks, CPUs string }
	for name, tc := range map[string]struct {
		job  api.Job
		spec *job.Spec
		want told
	}{
		"script":   {api.Job{Number: 12, NumNodes: 2, CPUs: 8}, spec(job.Stdio{Output: "slurm-%j.out"}, &job.Launch{Tasks: 4, CPUsPerTask: 2}), told{"/home/ann/run/slurm-12.out", "/home/ann/run/slurm-12.out", "/dev/null", "4", "2"}},
		"task":     {api.Job{Number: 14, Parent: 13, Task: new(3), NumNodes: 1, CPUs: 1}, spec(job.Stdio{Output: "%A_%a.out", Error: "/home/ann/%x.err", Input: "in"}, &job.Launch{}), told{"/home/ann/run/13_3.out", "/home/ann/train.err", "/home/ann/run/in", "1", "1"}},
		"per node": {api.Job{Number: 15, NumNodes: 3, CPUs: 12}, spec(job.Stdio{Output: "/dev/null", Error: "e"}, &job.Launch{PerNode: 2, CPUsPerTask: 2}), told{"/dev/null", "/home/ann/run/e", "/dev/null", "6", "2"}},
		"outside":  {api.Job{Number: 16, NumNodes: 1, CPUs: 1}, spec(job.Stdio{Output: "/tmp/out"}, &job.Launch{}), told{"/dev/null", "/dev/null", "/dev/null", "1", "1"}},
		"unseen":   {api.Job{Number: 17, NumNodes: 2, CPUs: 8}, nil, told{"/dev/null", "/dev/null", "/dev/null", "2", "4"}},
	} {
		r := &row{spec: tc.spec}
		r.Job = tc.job
		v := &table.View{}
		if diff := cmp.Diff(tc.want, told{rowStdOut(v, r), rowStdErr(v, r), rowStdIn(v, r), rowTasks(v, r), rowCPUsPerTask(v, r)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got := jobJSON(*v)(r)
		if diff := cmp.Diff(tc.want, told{fmt.Sprint(got["standard_output"]), fmt.Sprint(got["standard_error"]), fmt.Sprint(got["standard_input"]), fmt.Sprint(got["tasks"]), fmt.Sprint(got["cpus_per_task"])}); diff != "" {
			t.Errorf("%s as JSON (-want +got):\n%s", name, diff)
		}
	}
}

// TestCommand tells a batch script by its path and arguments, as Slurm does.
func TestCommand(t *testing.T) {
	script := func(file string, argv ...string) *job.Spec {
		return &job.Spec{Request: job.Request{Docker: job.Docker{Command: job.Command{Argv: argv}}}, Gbatch: &job.Gbatch{Launch: &job.Launch{Script: "#!/bin/sh\n", File: file}}}
	}
	for name, tc := range map[string]struct {
		spec *job.Spec
		want string
	}{
		"script":          {script("/home/ann/run.sh"), "/home/ann/run.sh"},
		"arguments":       {script("./run.sh", "a", "b c"), "./run.sh a b c"},
		"entrypoint":      {script("/home/ann/run.sh", "/bin/sh", job.ScriptPath, "a"), "/home/ann/run.sh a"},
		"standard input":  {script("", "a"), "(null)"},
		"no batch script": {&job.Spec{Request: job.Request{Docker: job.Docker{Command: job.Command{Line: "python train.py\ndone"}}}}, "python train.py"},
		"unseen":          {nil, "(null)"},
	} {
		if got := rowCommand(&table.View{}, &row{spec: tc.spec}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
