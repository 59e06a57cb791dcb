package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

func sampleNodes() []api.Node {
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
	busy := node("gpu1", 1, v100(0, 0), v100(1, 500))
	busy.Jobs, busy.CPUs.Free, busy.MemBytes.Free = 2, 4, 8<<30
	busy.GPUs[0].Job, busy.GPUs[0].Utilization, busy.GPUs[0].MemUsed = 12, ptr(87.4), ptr(int64(20<<30))
	sick := node("gpu9", 2, v100(0, 1000), v100(1, 1000))
	sick.State, sick.Reason = "drained", "ann: fan broken"
	sick.GPUs[1].Unhealthy = "XID 79"
	sim := node("dev", 2, api.GPU{UUID: "GPU-sim", Model: "A100-SXM4-80GB", MemBytes: 80 << 30, NUMA: -1, FreeMilli: 1000})
	sim.Simulated = true
	return []api.Node{sick, node("gpu3", 1, v100(0, 1000), v100(1, 1000)), node("gpu2", 1, v100(0, 1000), v100(1, 1000)), busy, node("cpu", 3), sim}
}

func sampleExplanations() map[string]*api.Explanation {
	return map[string]*api.Explanation{
		"12": {Number: 12, State: job.Running},
		"13": {Number: 13, State: job.Queued,
			Reasons:  []api.Reason{{Code: "Limit", Text: "ann runs 4 jobs of at most 4"}, {Code: "Resources", Text: "needs 2 GPUs, 1 is free", At: now.Add(time.Hour)}},
			Estimate: &api.Estimate{At: now.Add(time.Hour), Nodes: []string{"gpu1"}, Text: "when job 12 ends"},
			Priority: &api.Priority{Total: 5300, Age: 300, FairShare: 2000, Size: 1000, QOS: 2000},
			Before:   []job.Number{7, 8}, NBefore: 12,
			Nodes: []api.NodeVerdict{
				{Node: "gpu1", Code: "Resources", Text: "1 of 2 GPUs is free", FreeGPUs: 1, FreeCPUs: 4, FreeMem: 8 << 30, At: now.Add(time.Hour)},
				{Node: "gpu2", Code: "Drained", FreeCPUs: 16}, {Node: "gpu3", Code: "Drained", FreeCPUs: 16}, {Node: "gpu4", FreeGPUs: 2, FreeCPUs: 16, FreeMem: 64 << 30}},
			Advice: []api.Advice{{Change: "ask for 1 GPU", Text: "would start now on gpu1", Now: true}, {Change: "ask for 30 minutes", At: now.Add(time.Minute), Nodes: []string{"gpu2", "gpu3"}}}},
	}
}

// Each case is one command on a cluster that has all kinds of jobs and nodes;
// its output is in testdata.
func TestCommands(t *testing.T) {
	queue := func(o QueueOptions) func(context.Context, *App) error {
		return func(ctx context.Context, a *App) error { return a.Queue(ctx, o) }
	}
	info := func(o InfoOptions) func(context.Context, *App) error {
		return func(ctx context.Context, a *App) error { return a.Info(ctx, o) }
	}
	show := func(ids ...string) func(context.Context, *App) error {
		return func(ctx context.Context, a *App) error { return a.Show(ctx, ids, "") }
	}
	explain := func(ids ...string) func(context.Context, *App) error {
		return func(ctx context.Context, a *App) error { return a.Explain(ctx, ids) }
	}
	cancel := func(o CancelOptions) func(context.Context, *App) error {
		o.Action = "cancel"
		return func(ctx context.Context, a *App) error { return a.Cancel(ctx, o) }
	}
	person := func(width int) Terminal { return Terminal{In: true, Out: true, Err: true, Width: width, Color: true} }
	tests := map[string]struct {
		run    func(context.Context, *App) error
		term   Terminal
		output Output
	}{
		"queue-piped":         {run: queue(QueueOptions{})},
		"queue-terminal":      {run: queue(QueueOptions{}), term: person(200)},
		"queue-narrow":        {run: queue(QueueOptions{}), term: person(100)},
		"queue-no-color":      {run: queue(QueueOptions{}), term: Terminal{Out: true, Width: 200}},
		"queue-long":          {run: queue(QueueOptions{Long: true, All: true})},
		"queue-long-iso":      {run: queue(QueueOptions{Long: true}), output: Output{ISO: true}},
		"queue-all-no-header": {run: queue(QueueOptions{All: true, NoHeader: true})},
		"queue-states":        {run: queue(QueueOptions{States: []string{"pd", "F"}})},
		"queue-filters":       {run: queue(QueueOptions{Users: []string{"bob", "eve"}, Clusters: []int{1, 2}})},
		"queue-me":            {run: queue(QueueOptions{Me: true})},
		"queue-node":          {run: queue(QueueOptions{Nodes: []string{"gpu[01-03],gpu04"}})},
		"queue-limit":         {run: queue(QueueOptions{Limit: 2})},
		"queue-ids-given":     {run: queue(QueueOptions{IDs: []string{"12", "9"}})},
		"queue-ids":           {run: queue(QueueOptions{}), output: Output{IDs: true}},
		"queue-json":          {run: queue(QueueOptions{States: []string{"F"}}), output: Output{JSON: true}},
		"queue-json-empty":    {run: queue(QueueOptions{Users: []string{"nobody"}}), output: Output{JSON: true}},
		"queue-empty":         {run: queue(QueueOptions{Users: []string{"nobody"}}), term: person(80)},
		"queue-slurm":         {run: queue(QueueOptions{Format: "%.8i %.9P %.8j %.8u %.2t %.10M %.6D %R", All: true})},
		"queue-columns":       {run: queue(QueueOptions{Format: "id,state,LEFT,gpus, name", Sort: "-gpus,id"})},
		"queue-bad-column":    {run: queue(QueueOptions{Format: "id,colour"})},
		"queue-bad-letter":    {run: queue(QueueOptions{Format: "%i %y"})},
		"queue-bad-sort":      {run: queue(QueueOptions{Sort: "-colour"})},
		"queue-sort-limit":    {run: queue(QueueOptions{Sort: "-V,-id", Limit: 2})},
		"queue-priority":      {run: queue(QueueOptions{Priority: true, Sort: "-priority"})},
		"queue-qos":           {run: queue(QueueOptions{QOS: []string{"normal", "high"}, Users: []string{"bob"}})},
		"queue-tiny":          {run: queue(QueueOptions{}), term: person(1)},
		"queue-bad-state":     {run: queue(QueueOptions{States: []string{"RUNING"}})},
		"queue-bad-nodes":     {run: queue(QueueOptions{Nodes: []string{"gpu[3-1]"}})},
		"queue-as":            {run: queue(QueueOptions{As: "nvct", All: true})},
		"queue-as-unknown":    {run: queue(QueueOptions{As: "pbs"})},
		"events":              {run: func(ctx context.Context, a *App) error { return a.Events(ctx, []string{"9"}) }},
		"events-json":         {run: func(ctx context.Context, a *App) error { return a.Events(ctx, []string{"9"}) }, output: Output{JSON: true}},
		"show-failed":         {run: show("9")},
		"show-queued-iso":     {run: show("13"), output: Output{ISO: true}},
		"show-private":        {run: show("16")},
		"show-missing":        {run: show("99")},
		"show-several":        {run: show("14", "99")},
		"show-json":           {run: show("14"), output: Output{JSON: true}},
		"explain":             {run: explain("13", "12", "99")},
		"explain-json":        {run: explain("13"), output: Output{JSON: true}},
		"info":                {run: info(InfoOptions{})},
		"info-per-node":       {run: info(InfoOptions{PerNode: true}), term: person(200)},
		"info-gpus":           {run: info(InfoOptions{GPUs: true, NoHeader: false})},
		"info-short":          {run: info(InfoOptions{Short: true})},
		"info-chosen":         {run: info(InfoOptions{Nodes: []string{"gpu[1-2]"}, NoHeader: true})},
		"info-reasons":        {run: info(InfoOptions{Reasons: true})},
		"info-columns":        {run: info(InfoOptions{Format: "name,nodes,gpus,driver,features", PerNode: true})},
		"info-sinfo":          {run: info(InfoOptions{Format: "%.4P|%10N|%T|%c|%m|%E", NoHeader: true})},
		"info-bad-column":     {run: info(InfoOptions{Format: "name,colour"})},
		"diag":                {run: func(ctx context.Context, a *App) error { return a.Diag(ctx) }},
		"info-missing":        {run: info(InfoOptions{Nodes: []string{"gpu77"}})},
		"info-json":           {run: info(InfoOptions{Clusters: []int{3}}), output: Output{JSON: true}},
		"cancel":              {run: cancel(CancelOptions{IDs: []string{"12", "9"}})},
		"cancel-troubles":     {run: cancel(CancelOptions{IDs: []string{"12", "99", "16"}})},
		"cancel-json":         {run: cancel(CancelOptions{IDs: []string{"12"}}), output: Output{JSON: true}},
		"cancel-nothing":      {run: cancel(CancelOptions{})},
		"cancel-both":         {run: cancel(CancelOptions{IDs: []string{"1"}, Users: []string{"ann"}})},
		"cancel-no-match":     {run: cancel(CancelOptions{Me: true, States: []string{"QUEUED"}})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t, &fake{jobs: sampleJobs(), nodes: sampleNodes(), why: sampleExplanations()})
			b.app.Term, b.app.Output = tc.term, tc.output
			code := b.app.fail(Program{Name: "prog"}, tc.run(t.Context(), b.app))
			b.golden(t, name, code)
			if strings.ContainsAny(strings.ReplaceAll(strings.ReplaceAll(b.out.String(), "\x1b[3", ""), "\x1b[0m", ""), "\x1b\u009b\u202e") {
				t.Error("control characters of a job's name reached the terminal")
			}
		})
	}
}

// The box must be GPULab's own, to the byte.
func TestShortIsGPULabs(t *testing.T) {
	node := func(name string) api.Node {
		gpu := api.GPU{Model: "V100", FreeMilli: 1000}
		return api.Node{Name: name, Cluster: 1, Version: "stable", State: "up", CPUs: api.Use{Total: 16, Free: 16},
			MemBytes: api.Use{Total: 33479131791, Free: 33479131791}, GPUs: []api.GPU{gpu, gpu}}
	}
	b := start(t, &fake{nodes: []api.Node{node("gpu2"), node("gpu1")}})
	if err := b.app.Info(t.Context(), InfoOptions{Short: true}); err != nil {
		t.Fatal(err)
	}
	want := `+---------+---------+----------------------+---------+---------+---------+-----------------+
| Cluster | Version | Host                 | Workers | GPUs    | CPUs    | Memory (GB)     |
+---------+---------+----------------------+---------+---------+---------+-----------------+
| 1       | stable  | gpu1                 |   2/2   |   2/2   |  16/16  |   31.18/31.18   |
| 1       | stable  | gpu2                 |   2/2   |   2/2   |  16/16  |   31.18/31.18   |
+---------+---------+----------------------+---------+---------+---------+-----------------+
`
	if got := b.out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
