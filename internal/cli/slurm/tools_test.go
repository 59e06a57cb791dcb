package slurm

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
)

// TestTools asks as submitit, Snakemake, its plug-in, Nextflow, ReFrame, Parsl, Toil
// and simple_slurm ask for jobs that have just been given a node, for those of an array of
// which some tasks wait, and for an array that has ended.
func TestTools(t *testing.T) {
	for line, want := range map[string]string{
		// submitit takes every state that it does not know for an end, as CONFIGURING.
		"sacct -o JobID,State,NodeList --parsable2 -j 30 -j 31":                  "JobID|State|NodeList\n30|RUNNING|gpu01\n31_[2-3]|PENDING|None assigned\n31_0|RUNNING|gpu01\n31_0.batch|RUNNING|gpu01\n31_1|COMPLETED|gpu02\n31_1.batch|COMPLETED|gpu02\n",
		"sacct -X -o JobID,State,NodeList --parsable2 -j 31 -j 30,31":            "JobID|State|NodeList\n31_[2-3]|PENDING|None assigned\n31_0|RUNNING|gpu01\n31_1|COMPLETED|gpu02\n30|RUNNING|gpu01\n",
		"sacct -P -n --format=JobIdRaw,State -j 30":                              "30|RUNNING\n",
		"sacct -X --parsable2 --noheader --format=JobIdRaw,State --name chosen":  "30|RUNNING\n",
		"sacct -X -n -P -o JobID,State -s R -S now-2days -a --name chosen,tasks": "30|RUNNING\n31_0|RUNNING\n",
		"sacct -n -P -X -o JobID,State -S now-2days -a --name bad":               "36_0|FAILED\n",
		"sacct -X --noheader -P --format=jobid,state%20 --job 30":                "30|RUNNING\n", // Parsl cuts --jobs short
		"squeue --noheader --format=%i|%t --job 30":                              "30|CF\n",
		"sacct -n -j 30 --format JobIDRaw,State,ExitCode -P":                     "30|RUNNING|0:0\n",
		"squeue -h --format %i|%t|%M -j 30":                                      "30|CF|0:00\n",
		"squeue --noheader -o %i|%t -t all -p 1 -u ann":                          "31_[2-3]|PD\n31_0|R\n31_1|CD\n36_0|F\n30|CF\n",
		"squeue --format=%i|%T --states=all --noheader --name chosen":            "30|CONFIGURING\n",
		"squeue -h -j 30,36 -o %i|%T|%N|%r":                                      "30|CONFIGURING|gpu01|None\n",
		"squeue --noheader -o %i^^^%t --jobs=99,99":                              "",     // AiiDA names one twice, so that one that has gone is no error
		"sacct -n -X -P -S1970-01-01-00:00:01 -o JobID --name chosen":            "30\n", // TorchX and NeMo Run
		"squeue --me -o \"%i\",\"%j\",\"%t\",\"%D\" -n chosen":                   "\"JOBID\",\"NAME\",\"ST\",\"NODES\"\n\"30\",\"chosen\",\"CF\",\"1\"\n",
	} {
		mux := http.NewServeMux()
		mux.Handle("/", &clitest.Fake{Jobs: begunJobs(), Nodes: clitest.SampleNodes()})
		mux.HandleFunc("GET "+api.PathHistory, func(w http.ResponseWriter, _ *http.Request) { clitest.Answer(w, begunHistory()) })
		b := clitest.Start(t, mux)
		words := strings.Fields(line)
		if err := commands[words[0]](context.Background(), b.App, words[1:]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, b.Out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	fake := &clitest.Fake{Jobs: begunJobs(), Nodes: clitest.SampleNodes()}
	b := clitest.Start(t, fake)
	if err := scancel(context.Background(), b.App, []string{"-n", "tasks", "-t", "PENDING"}); err != nil || len(fake.Actions) != 1 || fake.Actions[0] != `cancel {"ids":["31_[2-3]"]}` {
		t.Errorf("scancel asked %q: %v", fake.Actions, err)
	}
}

// begunJobs are one that a node has just got, an array of four in which each is
// elsewhere, and an array of one that has failed.
func begunJobs() []api.JobDetail {
	one := func(n job.Number, id, name string, st job.State) api.JobDetail {
		return api.JobDetail{Spec: &job.Spec{Name: name}, Job: api.Job{
			ID: id, Number: n, Name: name, User: "ann", Project: "vision", State: st, Submitted: clitest.Now.Add(-time.Hour), LimitS: 3600, CPUs: 1, MemBytes: 1 << 30, Cluster: 1, QOS: "normal"}}
	}
	chosen := one(30, "30", "chosen", job.Starting)
	chosen.Nodes = []string{"gpu01"}
	array := one(31, "31", "tasks", job.Running)
	array.Tasks = &api.TaskSets{Indexes: "0-3", Waiting: "2-3", NumWaiting: 2}
	runs, ended := one(32, "31_0", "tasks", job.Running), one(33, "31_1", "tasks", job.Finished)
	runs.Parent, runs.Task, runs.Nodes, runs.Started = 31, new(0), []string{"gpu01"}, clitest.Now.Add(-time.Minute)
	ended.Parent, ended.Task, ended.Nodes, ended.Started, ended.Ended = 31, new(1), []string{"gpu02"}, clitest.Now.Add(-2*time.Minute), clitest.Now.Add(-time.Minute)
	failed, its := one(36, "36", "bad", job.Failed), one(37, "36_0", "bad", job.Failed)
	failed.Tasks = &api.TaskSets{Indexes: "0"}
	its.Parent, its.Task, its.Ended = 36, new(0), clitest.Now.Add(-time.Minute)
	return []api.JobDetail{chosen, array, runs, ended, failed, its}
}

// begunHistory has those that have ended, and arrays without what they used.
func begunHistory() (h api.History) {
	for _, d := range begunJobs() {
		if !d.State.Final() {
			continue
		}
		past := api.PastJob{Job: d.Job, Used: &api.Used{}}
		if d.Tasks != nil {
			past.Tasks, past.Used = nil, nil
		}
		h.Jobs = append(h.Jobs, past)
	}
	return h
}
