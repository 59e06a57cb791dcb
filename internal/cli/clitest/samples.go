package clitest

import (
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

func SampleJobs() []api.JobDetail {
	base := func(n job.Number, name string, st job.State) api.Job {
		return api.Job{
			ID: fmt.Sprint(n), Number: n, UUID: fmt.Sprintf("a280f7e8-b1e6-41e9-93a1-%012d", n), Name: name, User: "ann", Project: "vision", State: st,
			Submitted: Now.Add(-2 * time.Hour), LimitS: 4 * 3600, GPUs: 2, CPUs: 8, MemBytes: 32 << 30, Cluster: 1, Priority: 5000, QOS: "normal",
		}
	}
	running := base(12, "train", job.Running)
	running.Started, running.Nodes = Now.Add(-90*time.Minute), []string{"gpu01", "gpu02", "gpu03", "gpu07"}
	waiting := base(13, "a-job-with-quite-a-long-name-for-a-narrow-terminal", job.Queued)
	waiting.Reason, waiting.ReasonText, waiting.EstStart = "Resources", "waits for 2 GPUs of cluster 1, where 1 is free", Now.Add(25*time.Minute)
	held := base(14, "kept", job.OnHold)
	held.User, held.GPUs, held.MemBytes, held.Reason, held.LimitS = "bob", 0.5, 1536<<20, "Held", 0
	evil := base(15, "red\x1b[31m\u202e\u009b2Jname\n", job.Queued)
	evil.User, evil.Reason = "über", "Priority"
	evil.Factors = &api.Priority{Total: 900, Age: 100, FairShare: 700, Size: 50, QOS: 50}
	waiting.Factors = &api.Priority{Total: 5300, Age: 300, FairShare: 2000, Size: 1000, QOS: 1500, User: -500, Slowdown: 1000}
	failed := base(9, "oom", job.Failed)
	failed.Started, failed.Ended, failed.ExitCode = Now.Add(-26*time.Hour), Now.Add(-time.Hour), new(137)
	failed.Nodes, failed.Reason, failed.ReasonText = []string{"gpu01"}, "OOM", "used more than its 32 GiB of memory"
	private := base(16, "job-a280f7", job.Running)
	private.User, private.Project, private.Private, private.Started, private.Nodes = "eve", "other", true, Now.Add(-30*time.Hour), []string{"gpu04"}

	detail := api.JobDetail{Job: failed, Version: 7, Class: job.Program}
	detail.Spec = &job.Spec{Name: "oom", Description: "eats memory"}
	detail.Spec.Request.Resources = job.Resources{GPUs: 2, CPUs: 8, CPUMemoryGB: 32, GPUModel: []string{"V100", "A100"}, MinCudaVersion: 12}
	detail.Spec.Request.Docker = job.Docker{
		Image: "debian:stable", Command: job.Command{Argv: []string{"python", "train one.py"}},
		Environment: map[string]string{"B": "secret", "A": "x"},
		Storage:     []job.Storage{{HostPath: "/project", ContainerPath: "/project"}, {HostPath: "tmpfs", ContainerPath: "/t", SizeGB: 2}},
	}
	detail.Attempts = []api.Attempt{{Attempt: 1, Start: failed.Started, End: failed.Ended, Ranks: []api.Rank{{
		Allocation: api.Allocation{Node: "gpu01", CPUs: 8, MemBytes: 32 << 30, GPUs: []api.GPUShare{
			{UUID: "GPU-5fd4f087-86f3-7a43-b711-4771313afc50", Milli: 1000}, {UUID: "GPU-6fd4f087-86f3-7a43-b711-4771313afc50", Milli: 500}}},
		Phase: "ended", Cores: "0-7",
		Ports: []job.PortMapping{{ContainerPort: 80, HostPort: 20000}, {ContainerPort: 443, HostPort: 8443, HostIP: "2001:db8::1"}},
		Exit:  &node.Exit{Code: 137, Signal: 9, Reason: job.OOM, StartedMS: failed.Started.UnixMilli(), EndedMS: failed.Ended.UnixMilli(), PeakMem: 32 << 30},
	}}}}
	at := failed.Started.Add(-time.Minute)
	detail.Events = []api.Event{
		{Time: at, State: job.Queued, Message: "submitted by ann"},
		{Time: at.Add(30 * time.Second), State: job.Assigned, Message: "2 GPUs on gpu01"},
		{Time: at.Add(31 * time.Second), Message: "pulling debian:stable"},
		{Time: at.Add(60 * time.Second), State: job.Running},
		{Time: failed.Ended, State: job.Failed, Message: "exit code 137, out of memory"},
	}
	queued := api.JobDetail{Job: waiting, Version: 3, Position: 2, NumQueued: 5, Spec: &job.Spec{Name: waiting.Name}}
	return []api.JobDetail{{Job: running, Version: 2}, queued, {Job: held, Version: 1}, {Job: evil, Version: 1}, detail, {Job: private, Version: 1}}
}

func sampleDiag() api.Diagnosis {
	return api.Diagnosis{Version: "v1", Started: Now.Add(-26 * time.Hour), Now: Now, Turns: api.Timing{Count: 1000, MeanMS: 0.512, P50MS: 0.4, P99MS: 12.4},
		Commits: api.Timing{Count: 900, MeanMS: 0.4, P50MS: 0.3, P99MS: 3100}, Evaluated: 120.4, InboxSize: 4096, Inbox: 2, Records: 5000, Streams: 7,
		Waiting: 300, Running: 40, Shapes: 12, Starts: 77, Backfilled: 9, DiskFree: 90 << 30, DiskReserve: 1 << 30, StoreBytes: 12 << 20, HeapBytes: 60 << 20, Goroutines: 31,
		Routes: []api.RouteUse{{Route: "GET /v1/jobs", Timing: api.Timing{Count: 500, MeanMS: 2, P50MS: 1.5, P99MS: 40}, Refused: 3}}}
}

func Ended(st job.State, reason job.Reason, code *int) *api.JobDetail {
	return &api.JobDetail{Version: 9, Job: api.Job{
		Number: 12, Name: "hello", State: st, Reason: string(reason), ExitCode: code,
		Started: Now.Add(-time.Minute), Ended: Now,
	}}
}

func At(version uint64, st job.State) *api.JobDetail {
	d := &api.JobDetail{Version: version, Job: api.Job{Number: 12, Name: "hello", State: st}}
	if st.Active() && st != job.Assigned && st != job.Starting {
		d.Started, d.Nodes = Now.Add(-time.Minute), []string{"gpu1"}
		d.Attempts = []api.Attempt{{Attempt: 1}}
	}
	return d
}

// SampleNodes are nodes of each kind that looks different.
func SampleNodes() []api.Node {
	v100 := func(i int, free int64) api.GPU {
		return api.GPU{UUID: "GPU-5fd4f087-86f3-7a43-b711-00000000000" + string(rune('0'+i)), Index: i, Model: "Tesla V100-PCIE-32GB", MemBytes: 32 << 30, NUMA: 0, FreeMilli: free, ComputeCap: "7.0"}
	}
	node := func(name string, cluster int, gpus ...api.GPU) api.Node {
		free := int64(0)
		for _, g := range gpus {
			free += g.FreeMilli
		}
		return api.Node{Name: name, Cluster: cluster, State: "up", Version: "stable", CPUs: api.Use{Total: 16, Free: 16},
			MemBytes: api.Use{Total: 33479131791, Free: 33479131791}, GPUs: gpus, CUDA: "12.4"}
	}
	stored := []api.NodeStorage{{Name: ".ssh"}, {Name: "/data", ReadOnly: true, TotalBytes: 8 << 40, FreeBytes: 3 << 40},
		{Name: "/project", TotalBytes: 100 << 40, FreeBytes: 20 << 40}, {Name: "/scratch", Away: "directory /srv/scratch is not there: mount it"}}
	busy := node("gpu1", 1, v100(0, 0), v100(1, 500))
	busy.Jobs, busy.CPUs.Free, busy.MemBytes.Free = 2, 4, 8<<30
	busy.Storage = stored
	busy.GPUs[0].Job, busy.GPUs[0].Utilization, busy.GPUs[0].MemUsed = 12, new(87.4), new(int64(20<<30))
	sick := node("gpu9", 2, v100(0, 1000), v100(1, 1000))
	sick.State, sick.Reason = "drained", "ann: fan broken"
	sick.GPUs[1].Unhealthy = "XID 79"
	sim := node("dev", 2, api.GPU{UUID: "GPU-sim", Model: "A100-SXM4-80GB", MemBytes: 80 << 30, NUMA: -1, FreeMilli: 1000})
	sim.Simulated = true
	return []api.Node{sick, node("gpu3", 1, v100(0, 1000), v100(1, 1000)), node("gpu2", 1, v100(0, 1000), v100(1, 1000)), busy, node("cpu", 3), sim}
}

// SampleExplanations say why the sample jobs wait.
func SampleExplanations() map[string]*api.Explanation {
	return map[string]*api.Explanation{
		"12": {Number: 12, State: job.Running},
		"13": {Number: 13, State: job.Queued,
			Reasons:  []api.Reason{{Code: "Limit", Text: "ann runs 4 jobs of at most 4"}, {Code: "Resources", Text: "needs 2 GPUs, 1 is free", At: Now.Add(time.Hour)}},
			Estimate: &api.Estimate{At: Now.Add(time.Hour), Nodes: []string{"gpu1"}, Text: "when job 12 ends"},
			Priority: &api.Priority{Total: 5300, Age: 300, FairShare: 2000, Size: 1000, QOS: 2000},
			Before:   []job.Number{7, 8}, NBefore: 12, Position: 16, NumQueued: 40,
			Nodes: []api.NodeVerdict{
				{Node: "gpu1", Code: "Resources", Text: "1 of 2 GPUs is free", FreeGPUs: 1, FreeCPUs: 4, FreeMem: 8 << 30, At: Now.Add(time.Hour)},
				{Node: "gpu2", Code: "Drained", FreeCPUs: 16}, {Node: "gpu3", Code: "Drained", FreeCPUs: 16}, {Node: "gpu4", FreeGPUs: 2, FreeCPUs: 16, FreeMem: 64 << 30}},
			Advice: []api.Advice{{Change: "ask for 1 GPU", Text: "would start now on gpu1", Now: true}, {Change: "ask for 30 minutes", At: Now.Add(time.Minute), Nodes: []string{"gpu2", "gpu3"}}}},
	}
}

// samplePast is a node with what became of it.
func samplePast(n api.Node) *api.NodeDetail {
	n.Since = Now.Add(-time.Hour)
	return &api.NodeDetail{Node: n, Past: []api.NodeChange{
		{Time: Now.Add(-48 * time.Hour), State: "up", Text: "joined, with 4 GPUs and 16 cores"},
		{Time: Now.Add(-3 * time.Hour), State: "drained", Text: "drained", Reason: "fan (op)", By: "op"},
		{Time: Now.Add(-2 * time.Hour), State: "up", Text: "resumed", By: "op"},
		{Time: Now.Add(-62 * time.Minute), State: "suspect", Text: "suspect: no contact for 30 seconds", Reason: "no contact"},
		{Time: Now.Add(-time.Hour), State: n.State, Text: "back after 2 minutes", Reason: n.Reason},
	}}
}

// samplePlan has a job that runs on the first node, and others' that waits for it.
func samplePlan(nodes []api.Node) api.Plan {
	out := api.Plan{Now: Now, Total: len(nodes), Nodes: []api.PlanNode{}}
	for i, n := range nodes {
		p := api.PlanNode{Name: n.Name, State: n.State, GPUs: len(n.GPUs), Spans: []api.PlanSpan{}}
		if i == 0 {
			p.Spans = []api.PlanSpan{
				{Kind: api.PlanRunning, Job: "12", User: "ann", Name: "hello\x1b[31m", Start: Now.Add(-time.Hour), End: Now.Add(time.Hour), GPUs: 1.5, CPUs: 4},
				{Kind: api.PlanPromised, Start: Now.Add(time.Hour), GPUs: 2, CPUs: 8, Private: true},
			}
		}
		out.Nodes = append(out.Nodes, p)
	}
	return out
}
