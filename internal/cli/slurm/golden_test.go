package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

func TestMain(m *testing.M) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "S") && strings.Contains(name, "_") {
			os.Unsetenv(name)
		}
	}
	clitest.Main(m)
}

// controller answers what clitest's does not know.
func controller() http.Handler {
	fake := &clitest.Fake{Jobs: clitest.SampleJobs(), Nodes: clitest.SampleNodes()}
	fake.Jobs[0].Steps = []api.Step{
		{Number: 0, Attempt: 1, Name: "prepare", Tasks: 1, CPUs: 2, Nodes: []string{"gpu01"}, Begun: clitest.Now.Add(-80 * time.Minute), Ended: clitest.Now.Add(-70 * time.Minute), Code: 3,
			Use: &job.StepUse{UserMS: 90_500, SystemMS: 1500, MaxRSSKiB: 2048, SumRSSKiB: 2048, MinCPUMS: 92_000}},
		{Number: 1, Attempt: 1, Name: "torchrun", Tasks: 4, CPUs: 8, GPUs: 2, Nodes: []string{"gpu01", "gpu02", "gpu03", "gpu07"}, Begun: clitest.Now.Add(-70 * time.Minute)},
	}
	fake.Jobs[4].Steps = []api.Step{{Number: 0, Attempt: 1, Name: "train", Tasks: 2, CPUs: 2, GPUs: 1, Nodes: []string{"gpu01"}, Begun: clitest.Now.Add(-25 * time.Hour), Ended: clitest.Now.Add(-61 * time.Minute), Code: 137, Signal: 9, OOM: true,
		Use: &job.StepUse{UserMS: 3_600_000, SystemMS: 100, MaxRSSKiB: 1 << 20, MaxRSSTask: 1, SumRSSKiB: 3 << 19, MinCPUMS: 5000, MinCPUTask: 1}}}
	array := api.JobDetail{Job: fake.Jobs[1].Job, Spec: &job.Spec{Name: "sweep", Gbatch: &job.Gbatch{Labels: map[string]string{"comment": "a sweep"}, ExcludeNodes: []string{"n1", "n2"}}}}
	array.Number, array.ID, array.Name = 20, "20", "sweep"
	array.Tasks = &api.TaskSets{Indexes: "0-9", Waiting: "4-6,9", NumWaiting: 4, Parallelism: 2}
	fake.Jobs = append(fake.Jobs, array)
	fake.Licenses = []api.License{{Name: "ansys", Total: 20}, {Name: "matlab", Total: 4, Used: 3, Asked: 2}}
	mux := http.NewServeMux()
	answer := func(path string, body any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { clitest.Answer(w, body) })
	}
	answer(api.PathSite, api.Site{DefaultDurationS: 3600, MaxDurationS: 7 * 86400, GraceS: 30, QOS: []api.SiteQOS{{Name: "high", Priority: 100, Preempts: []string{"normal"}}}})
	answer(api.PathStatus, api.Status{You: "ann", Role: "operator", Started: clitest.Now, Projects: []string{"vision", "speech"}})
	answer(api.PathShares, api.ShareList{Shares: []api.Share{
		{Project: "vision", Depth: 0, Shares: 60, NormShares: 0.6, UsageHours: 2, NormUsage: 0.25, LevelFS: 2.4, Budget: &api.Budget{Hours: 10}},
		{Project: "vision", User: "ann", Parent: "vision", Depth: 1, Shares: 1, NormShares: 0.5, UsageHours: 2, NormUsage: 1, LevelFS: 0.5, FairShare: 0.25},
		{Project: "vision", User: "bob", Parent: "vision", Depth: 1, Shares: 1, NormShares: 0.5, LevelFS: -1, FairShare: 1},
	}})
	past := api.PastJob{Job: fake.Jobs[4].Job, Used: &api.Used{CPUTimeS: 3600, PeakMem: 31 << 30, ElapsedS: 90000}}
	answer(api.PathHistory, api.History{Jobs: []api.PastJob{past}})
	answer(api.PathReservations, api.ReservationList{Reservations: []api.Reservation{{Name: "course", Start: clitest.Now, End: clitest.Now.Add(7200e9), Nodes: []string{"gpu1", "gpu2"}, Users: []string{"ann"}, Cluster: 1}}})
	mux.Handle("/", fake)
	return mux
}

// TestGolden shows what the commands print, byte for byte. Compare a change with
// what Slurm prints before it is taken.
func TestGolden(t *testing.T) {
	for name, line := range map[string]string{
		"squeue": "squeue", "squeue-long": "squeue -l", "squeue-start": "squeue --start", "squeue-each": "squeue -r -h -o %i|%A|%F|%K", "squeue-all": "squeue -o %all",
		"squeue-format2": "squeue -O jobid:.10,name:12|,state,reasonlist:40", "squeue-sort": "squeue -h -S -i -o %i", "squeue-cluster": "squeue -M all -h -o %i -t R", "squeue-json": "squeue --json -j 20,12",
		"squeue-states": "squeue --only-job-state", "squeue-unknown": "squeue -j 999", "squeue-steps": "squeue -s", "squeue-bare": "squeue -h -t R -O JobID:,State:|,Name:.,NodeList:x,UserName",
		"squeue-portal": "squeue -M gbatch --all --states=all --noconvert -j 9,12 -O Account:;,JobID:;,Sockets:;,Cores:;,Threads:;,MinMemory:;,tres-per-job:;,PendingTime:;,RestartCnt:;,AllocNodes:", "squeue-none-of": "squeue -h -j 998,999",
		"scontrol-step": "scontrol -o show step 12", "scontrol-no-step": "scontrol show step 12.7", "scontrol-write": "scontrol write batch_script 9 -", "sacct-script": "sacct -B -j 9",
		"sacct-units": "sacct -n -P --units=M -j 9 --fields jobid,reqmem,maxrss,averss,alloctres", "sacct-unit": "sacct --units=X -j 9", "sacctmgr-snorp": "sacctmgr -snorp show user ann format=user,account", "squeue-step": "squeue --steps=12.1 -h -o %i|%A|%C|%D|%b|%T",
		"sacct-steps": "sacct -j 9,12 -o JobID,JobName,User,AllocCPUS,State,ExitCode,MaxRSS,AveCPU,NTasks,AllocTRES%30", "sacct-step": "sacct -n -P -j 12.0,9.batch -o jobid,jobidraw,state,exitcode,maxrss,maxrssnode,usercpu,systemcpu,totalcpu,mincpu", "squeue-no-field": "squeue -O nosuch", "squeue-no-letter": "squeue -o %_", "squeue-other-cluster": "squeue -M moon",
		"sacct": "sacct -S 2026-02-01 -a", "sacct-fields": "sacct -e", "sacct-one": "sacct -X -P -j 9 -o JobID,State,ExitCode,AllocTRES,MaxRSS,CPUTimeRAW,Timelimit,NodeList", "sacct-wide": "sacct -S 2026-02-01 -a -o JobID%4,State%-20,JobName%6",
		"sacct-json": "sacct --json -j 9", "sacct-all": "sacct -j 9 -o ALL -P", "sacct-unknown": "sacct -j 999",
		"sinfo": "sinfo", "sinfo-summary": "sinfo -s", "sinfo-long": "sinfo -l", "sinfo-nodes": "sinfo -N", "sinfo-nodes-long": "sinfo -N -l", "sinfo-reasons": "sinfo -R", "sinfo-letters": "sinfo -h -o %P|%a|%l|%D|%t|%T|%N|%c|%m|%G|%C|%E|%A|%F|%f|%v",
		"sinfo-format2": "sinfo -O NodeList,StateLong,CPUsState,Gres:30,GresUsed:40", "sinfo-idle": "sinfo -h -t idle -o %D", "sinfo-no-state": "sinfo -t idle&WRONG", "sinfo-json": "sinfo --json -n gpu1",
		"scontrol-job": "scontrol show jobid -d 9", "scontrol-job-array": "scontrol show job 20", "scontrol-job-line": "scontrol -o show job 12", "scontrol-job-missing": "scontrol show job 999", "scontrol-jobs-json": "scontrol --json show job 9",
		"scontrol-node": "scontrol -d show node gpu1", "scontrol-nodes-line": "scontrol show -o nodes", "scontrol-node-missing": "scontrol show node moon", "scontrol-partition": "scontrol show partition 1", "scontrol-partition-missing": "scontrol show partition moon",
		"scontrol-reservation": "scontrol show res", "scontrol-config": "scontrol show config", "scontrol-hostnames": "scontrol show hostnames n[1-3,7],m1", "scontrol-hostlist": "scontrol show hostlist n3,n1,n2", "scontrol-sorted": "scontrol show hostlistsorted n3,n1,n2",
		"scontrol-update-partition": "scontrol update PartitionName=gpu State=DOWN", "scontrol-licenses": "scontrol show licenses", "scontrol-license": "scontrol -o show lic ansys", "scontrol-license-none": "scontrol show license moon",
		"sacct-xdmod":             "sacct --clusters gbatch --allusers --parsable2 --noheader --allocations --duplicates --format jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname --starttime 2020-01-01T00:00:00 --endtime 2030-01-01T00:00:00 --state CANCELLED,COMPLETED,FAILED,NODE_FAIL,PREEMPTED,TIMEOUT,OUT_OF_MEMORY",
		"scontrol-hostnames-none": "scontrol show hostnames", "scontrol-unknown": "scontrol show moon", "scontrol-word": "scontrol moon", "sbatch-parts": "sbatch -n1 : -n2 x", "salloc-parts": "salloc -n1 : -n2 x", "scontrol-none": "scontrol", "scontrol-update-unknown": "scontrol update JobId=12 Partition=2", "scontrol-update-priority": "scontrol update JobId=12 Priority=7",
		"scontrol-drain-no-reason": "scontrol update NodeName=gpu1 State=DRAIN", "scontrol-down": "scontrol update NodeName=gpu1 State=DOWN Reason=x", "scontrol-ping": "scontrol ping", "scontrol-version": "scontrol --version",
		"sacctmgr-assoc": "sacctmgr -P show assoc", "sacctmgr-account": "sacctmgr -n -P show user ann withassoc format=account,user,qos", "sacctmgr-users": "sacctmgr show user", "sacctmgr-qos": "sacctmgr show qos", "sacctmgr-accounts": "sacctmgr list account",
		"sacctmgr-cluster": "sacctmgr -n show cluster format=cluster,qos", "sacctmgr-unknown": "sacctmgr show moon", "sacctmgr-add": "sacctmgr add user x",
		"sprio": "sprio", "sprio-long": "sprio -l", "sprio-one": "sprio -h -j 13 -o %i|%Y|%S", "sshare": "sshare", "sshare-all": "sshare -a -l", "sshare-users": "sshare -U -P --format Account%256,User -n",
		"sdiag": "sdiag", "seff": "seff 9", "seff-waiting": "seff 13", "sstat-fields": "sstat -e", "sstat-waiting": "sstat -j 13",
	} {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, controller())
			words := strings.Fields(line)
			code := play0(b.App, words[0], words[1:])
			b.Golden(t, name, code)
		})
	}
}

// play0 is play with a client that the test has made.
func play0(a *cli.App, name string, args []string) int {
	if len(args) == 1 && args[0] == "--version" {
		return play(a, "", name, args)
	}
	return a.Finish(cli.Program{Name: name, Failure: 1}, commands[name](context.Background(), a, args))
}

// TestNoID ends as Slurm does where a text can be no job's, and cancels nothing.
func TestNoID(t *testing.T) {
	for _, id := range []string{"abc", "0", "12a", "12_", "12_[1-3", "12_[a]", "12_1-3", "12.batch", "12.x", "-"} {
		fake := &clitest.Fake{Jobs: clitest.SampleJobs()}
		b := clitest.Start(t, fake)
		code := play0(b.App, "scancel", []string{"12", "--", id})
		want := "scancel: error: Invalid job id " + id + "\n"
		if got := b.Err.String(); code != 1 || got != want || len(fake.Actions) > 0 {
			t.Errorf("scancel 12 %s: said %q, did %q and ended with %d; want %q, nothing and 1", id, got, fake.Actions, code, want)
		}
	}
	for _, id := range []string{"12", "12_3", "12_[3-9,12]", "12.0", "12_3.1"} {
		if !isID(id) {
			t.Errorf("%s is taken for no id", id)
		}
	}
}

// TestStateWords takes the words of Slurm's sinfo -t, in short and in any case.
func TestStateWords(t *testing.T) {
	for words, want := range map[string]string{
		"IDLE": "cpu dev gpu2 gpu3 gpu9", "idl,mix": "cpu dev gpu1 gpu2 gpu3 gpu9", "all": "cpu dev gpu1 gpu2 gpu3 gpu9", "future,maint": "", "m": "gpu1", "mixed&drain": "",
	} {
		b := clitest.Start(t, controller())
		code := play0(b.App, "sinfo", []string{"-h", "-N", "-o", "%N", "-t", words})
		if got := strings.Join(strings.Fields(b.Out.String()), " "); got != want || code != 0 {
			t.Errorf("sinfo -t %s: printed %q and ended with %d (%s), want %q", words, got, code, b.Err.String(), want)
		}
	}
}

// TestVariables reads the variables that say what options do, where the option is
// not given.
func TestVariables(t *testing.T) {
	for _, test := range []struct{ env, line, want string }{
		{"SQUEUE_FORMAT=%i", "squeue -h -t PD", "13\n20_[4-6,9%2]\n15\n14\n"},
		{"SQUEUE_FORMAT=%i", "squeue -h -t R -o %A", "12\n16\n"},
		{"SQUEUE_STATES=R", "squeue -h -o %i", "12\n16\n"},
		{"SQUEUE_USERS=bob", "squeue -h -o %i", "14\n"},
		{"SQUEUE_SORT=-i", "squeue -h -o %i -t R", "16\n12\n"},
		{"SINFO_PARTITION=3", "sinfo -h -o %N", "cpu\n"},
		{"SACCT_FORMAT=jobid", "sacct -n -P -j 9", "9\n9.batch\n9.0\n"},
	} {
		b := clitest.Start(t, controller())
		b.App.Environ = func() []string { return []string{test.env} }
		words := strings.Fields(test.line)
		if err := commands[words[0]](context.Background(), b.App, words[1:]); err != nil || b.Out.String() != test.want {
			t.Errorf("%s %s: %q, %v; want %q", test.env, test.line, b.Out.String(), err, test.want)
		}
	}
}

// TestUpdates sees what scontrol asks of the controller.
func TestUpdates(t *testing.T) {
	for line, want := range map[string]string{
		"scontrol update JobId=13 TimeMin=10":                   `update {"ids":["13"],"change":{"limitMinS":600}}`,
		"scontrol update JobId=13 TimeLimit=30 Nice=5":          `update {"ids":["13"],"change":{"limitS":1800,"priority":-5}}`,
		"scontrol update job 13,14 JobName=x":                   `update {"ids":["13","14"],"change":{"name":"x"}}`,
		"scontrol update JobId=13 Account=a QOS=b":              `update {"ids":["13"],"change":{"project":"a","qos":"b"}}`,
		"scontrol update JobId=13 TimeLimit=+1:00:00":           `update {"ids":["13"],"change":{"limitS":18000}}`,
		"scontrol update JobId=13 Comment=a=b":                  `update {"ids":["13"],"change":{"comment":"a=b"}}`,
		"scontrol update JobId=13 Comment=":                     `update {"ids":["13"],"change":{"comment":""}}`,
		"scontrol update JobId=13 Priority=0":                   `hold {"ids":["13"]}`,
		"scontrol hold 13,14 20_[4,5]":                          `hold {"ids":["13","14","20_[4,5]"]}`,
		"scontrol uhold jobid=13":                               `uhold {"ids":["13"]}`,
		"scontrol release 13":                                   `release {"ids":["13"]}`,
		"scontrol requeue 12":                                   `requeue {"ids":["12"]}`,
		"scancel --quiet 999":                                   `cancel {"ids":["999"]}`,
		"scontrol suspend 12":                                   `pause {"ids":["12"]}`,
		"scontrol resume 12":                                    `resume {"ids":["12"]}`,
		"scancel -s 10 12":                                      `signal {"ids":["12"],"signal":"USR1"}`,
		"scancel -b --signal=SIGTERM 12":                        `signal {"ids":["12"],"signal":"TERM"}`,
		"scancel -f -H 12 13":                                   `cancel {"ids":["12","13"]}`,
		"scancel 20_[4-6],12":                                   `cancel {"ids":["20_[4-6]","12"]}`,
		"scancel -t PENDING -u bob":                             `cancel {"ids":["14"]}`,
		"scancel --state=RUNNING --qos normal -p 1 -n train -Q": `cancel {"ids":["12"]}`,
	} {
		fake := &clitest.Fake{Jobs: clitest.SampleJobs(), Nodes: clitest.SampleNodes()}
		b := clitest.Start(t, fake)
		words := strings.Fields(line)
		err := commands[words[0]](context.Background(), b.App, words[1:])
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if got := strings.Join(fake.Actions, "; "); got != want {
			t.Errorf("%s: asked %s (%s), want %s", line, got, fmt.Sprint(err), want)
		}
	}
}
