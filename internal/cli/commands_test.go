package cli_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/adm"
	"gbatch/internal/cli/cancel"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/info"
	"gbatch/internal/cli/logs"
	"gbatch/internal/cli/queue"
	"gbatch/internal/cli/submit"
)

// colors are what shows a state in colour.
var colors = regexp.MustCompile(`\x1b\[[0-9]*m`)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestCommands(t *testing.T) {
	list := func(o queue.List) func(context.Context, *cli.App) error { return o.Run }
	nodes := func(o info.Info) func(context.Context, *cli.App) error { return o.Run }
	show := func(ids ...string) func(context.Context, *cli.App) error {
		return (&queue.Show{IDs: ids}).Run
	}
	explain := func(ids ...string) func(context.Context, *cli.App) error {
		return (&queue.Explain{IDs: ids}).Run
	}
	end := func(o cancel.Cancel) func(context.Context, *cli.App) error { return o.Run }
	person := func(width int) cli.Terminal {
		return cli.Terminal{In: true, Out: true, Err: true, Width: width, ErrWidth: width, Color: true}
	}
	tests := map[string]struct {
		run    func(context.Context, *cli.App) error
		term   cli.Terminal
		output cli.Output
	}{
		"queue-piped":         {run: list(queue.List{})},
		"queue-terminal":      {run: list(queue.List{}), term: person(200)},
		"queue-narrow":        {run: list(queue.List{}), term: person(100)},
		"queue-start-narrow":  {run: list(queue.List{Start: true}), term: person(60)},
		"queue-no-color":      {run: list(queue.List{}), term: cli.Terminal{Out: true, Width: 200}},
		"queue-long":          {run: list(queue.List{Long: true, All: true})},
		"queue-long-iso":      {run: list(queue.List{Long: true}), output: cli.Output{ISO: true}},
		"queue-all-no-header": {run: list(queue.List{All: true, NoHeader: true})},
		"queue-states":        {run: list(queue.List{States: []string{"pd", "F"}})},
		"queue-filters":       {run: list(queue.List{Users: []string{"bob", "eve"}, Clusters: []string{"1", "2"}})},
		"queue-me":            {run: list(queue.List{Me: true})},
		"queue-node":          {run: list(queue.List{Nodes: []string{"gpu[01-03],gpu04"}})},
		"queue-limit":         {run: list(queue.List{Limit: 2})},
		"queue-ids-given":     {run: list(queue.List{IDs: []string{"12", "9"}})},
		"queue-range":         {run: list(queue.List{IDs: []string{"9-13,16"}})},
		"queue-start":         {run: list(queue.List{Start: true})},
		"queue-yaml":          {run: list(queue.List{Format: "yaml", IDs: []string{"12"}})},
		"queue-ids":           {run: list(queue.List{}), output: cli.Output{IDs: true}},
		"queue-json":          {run: list(queue.List{States: []string{"F"}}), output: cli.Output{JSON: true}},
		"queue-json-empty":    {run: list(queue.List{Users: []string{"nobody"}}), output: cli.Output{JSON: true}},
		"queue-empty":         {run: list(queue.List{Users: []string{"nobody"}}), term: person(80)},
		"queue-slurm":         {run: list(queue.List{Format: "%.8i %.9P %.8j %.8u %.2t %.10M %.6D %R", All: true})},
		"queue-columns":       {run: list(queue.List{Format: "id,state,LEFT,gpus, name", Sort: "-gpus,id"})},
		"queue-bad-column":    {run: list(queue.List{Format: "id,colour"})},
		"queue-bad-letter":    {run: list(queue.List{Format: "%i %y"})},
		"queue-bad-sort":      {run: list(queue.List{Sort: "-colour"})},
		"queue-sort-limit":    {run: list(queue.List{Sort: "-V,-id", Limit: 2})},
		"queue-priority":      {run: list(queue.List{Priority: true, Sort: "-priority"})},
		"queue-qos":           {run: list(queue.List{QOS: []string{"normal", "high"}, Users: []string{"bob"}})},
		"queue-absent":        {run: list(queue.List{Projects: []string{"visoin"}, QOS: []string{"hihg"}, Clusters: []string{"gpus", "9", "1"}, Nodes: []string{"gpu77"}})},
		"queue-absent-user":   {run: list(queue.List{Projects: []string{"vision"}, Users: []string{"nobody"}})},
		"queue-negative":      {run: list(queue.List{Limit: -1})},
		"queue-slim":          {run: list(queue.List{}), term: person(40)},
		"queue-slim-empty":    {run: list(queue.List{Users: []string{"nobody"}}), term: person(40)},
		"show-slim-missing":   {run: show("99"), term: person(40)},
		"cancel-slim":         {run: end(cancel.Cancel{IDs: []string{"12", "99", "16"}}), term: person(40)},
		"queue-thin":          {run: list(queue.List{}), term: person(28)},
		"queue-tiny":          {run: list(queue.List{}), term: person(1)},
		"queue-bad-state":     {run: list(queue.List{States: []string{"RUNING"}})},
		"queue-bad-nodes":     {run: list(queue.List{Nodes: []string{"gpu[3-1]"}})},
		"queue-as":            {run: list(queue.List{As: "nvct", All: true})},
		"queue-as-unknown":    {run: list(queue.List{As: "pbs"})},
		"events":              {run: (&queue.Events{IDs: []string{"9"}}).Run},
		"events-json":         {run: (&queue.Events{IDs: []string{"9"}}).Run, output: cli.Output{JSON: true}},
		"show-failed":         {run: show("9")},
		"show-queued-iso":     {run: show("13"), output: cli.Output{ISO: true}},
		"show-private":        {run: show("16")},
		"show-missing":        {run: show("99")},
		"show-several":        {run: show("14", "99")},
		"show-json":           {run: show("14"), output: cli.Output{JSON: true}},
		"explain":             {run: explain("13", "12", "99")},
		"explain-json":        {run: explain("13"), output: cli.Output{JSON: true}},
		"info":                {run: nodes(info.Info{})},
		"info-per-node":       {run: nodes(info.Info{PerNode: true}), term: person(200)},
		"info-node":           {run: nodes(info.Info{Node: []string{"gpu1"}})},
		"info-node-flags":     {run: nodes(info.Info{Node: []string{"gpu1"}, GPUs: true})},
		"info-node-missing":   {run: nodes(info.Info{Node: []string{"gpu77"}})},
		"info-gpus":           {run: nodes(info.Info{GPUs: true, NoHeader: false})},
		"info-gpus-narrow":    {run: nodes(info.Info{GPUs: true}), term: person(80)},
		"info-users":          {run: nodes(info.Info{Users: true})},
		"info-users-json":     {run: nodes(info.Info{Users: true}), output: cli.Output{JSON: true}},
		"info-users-node":     {run: nodes(info.Info{Users: true, Nodes: []string{"gpu1"}})},
		"info-plan":           {run: nodes(info.Info{Plan: true})},
		"info-plan-chosen":    {run: nodes(info.Info{Plan: true, Nodes: []string{"gpu2"}, NoHeader: true}), output: cli.Output{JSON: true}},
		"info-plan-node":      {run: nodes(info.Info{Plan: true, Node: []string{"gpu1"}})},
		"info-short":          {run: nodes(info.Info{Short: true})},
		"info-chosen":         {run: nodes(info.Info{Nodes: []string{"gpu[1-2]"}, NoHeader: true})},
		"info-reasons":        {run: nodes(info.Info{Reasons: true})},
		"info-columns":        {run: nodes(info.Info{Format: "name,nodes,gpus,driver,features", PerNode: true})},
		"info-sinfo":          {run: nodes(info.Info{Format: "%.4P|%10N|%T|%c|%m|%E", NoHeader: true})},
		"info-bad-column":     {run: nodes(info.Info{Format: "name,colour"})},
		"diag":                {run: adm.Diag{}.Run},
		"info-missing":        {run: nodes(info.Info{Nodes: []string{"gpu77"}})},
		"info-json":           {run: nodes(info.Info{Clusters: []string{"3"}}), output: cli.Output{JSON: true}},
		"cancel":              {run: end(cancel.Cancel{IDs: []string{"12", "9"}})},
		"cancel-troubles":     {run: end(cancel.Cancel{IDs: []string{"12", "99", "16"}})},
		"cancel-json":         {run: end(cancel.Cancel{IDs: []string{"12"}}), output: cli.Output{JSON: true}},
		"cancel-nothing":      {run: end(cancel.Cancel{})},
		"cancel-both":         {run: end(cancel.Cancel{IDs: []string{"1"}, Users: []string{"ann"}})},
		"cancel-no-match":     {run: end(cancel.Cancel{Me: true, States: []string{"QUEUED"}})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, &clitest.Fake{Jobs: clitest.SampleJobs(), Nodes: clitest.SampleNodes(), Why: clitest.SampleExplanations()})
			b.App.Term, b.App.Output = tc.term, tc.output
			code := b.App.Finish(cli.Program{Name: "prog"}, tc.run(t.Context(), b.App))
			b.Golden(t, name, code)
			for l := range strings.Lines(b.Out.String() + b.Err.String()) {
				if tc.term.Width >= 40 && human.Width(colors.ReplaceAllString(l, "")) > tc.term.Width+1 {
					t.Errorf("wider than %d columns: %q", tc.term.Width, l)
				}
			}
			if strings.ContainsAny(strings.ReplaceAll(strings.ReplaceAll(b.Out.String(), "\x1b[3", ""), "\x1b[0m", ""), "\x1b\u009b\u202e") {
				t.Error("control characters of a job's name reached the terminal")
			}
		})
	}
}

func TestShortIsGPULabs(t *testing.T) {
	node := func(name string) api.Node {
		gpu := api.GPU{Model: "V100", FreeMilli: 1000}
		return api.Node{Name: name, Cluster: 1, Version: "stable", State: "up", CPUs: api.Use{Total: 16, Free: 16},
			MemBytes: api.Use{Total: 33479131791, Free: 33479131791}, GPUs: []api.GPU{gpu, gpu}}
	}
	b := clitest.Start(t, &clitest.Fake{Nodes: []api.Node{node("gpu2"), node("gpu1")}})
	if err := (&info.Info{Short: true}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	want := `+---------+---------+----------------------+---------+---------+---------+-----------------+
| Cluster | Version | Host                 | Workers | GPUs    | CPUs    | Memory (GB)     |
+---------+---------+----------------------+---------+---------+---------+-----------------+
| 1       | stable  | gpu1                 |   2/2   |   2/2   |  16/16  |   31.18/31.18   |
| 1       | stable  | gpu2                 |   2/2   |   2/2   |  16/16  |   31.18/31.18   |
+---------+---------+----------------------+---------+---------+---------+-----------------+
`
	if got := b.Out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestDeadController(t *testing.T) {
	commands := map[string]func(context.Context, *cli.App) error{
		"submit": func(ctx context.Context, a *cli.App) error {
			a.In = strings.NewReader(helloJob)
			return (&submit.Submit{Files: []string{"-"}}).Run(ctx, a)
		},
		"queue":  (&queue.List{}).Run,
		"show":   (&queue.Show{IDs: []string{"1", "2"}}).Run,
		"cancel": (&cancel.Cancel{IDs: []string{"1"}}).Run,
		"log":    (&logs.Log{ID: "1"}).Run,
		"info":   (&info.Info{}).Run,
	}
	for name, run := range commands {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, nil)
			code := b.App.Finish(cli.Program{Name: "prog"}, run(t.Context(), b.App))
			want := "prog: controller at unix://" + b.Socket + " does not answer: connect: no such file or directory; is gctld running? try `gctld dev` or set GBATCH_CONTROLLER\n"
			if code != exit.Unreachable || b.Err.String() != want {
				t.Errorf("exit %d, stderr %q, want 5 and %q", code, b.Err.String(), want)
			}
		})
	}
}

func TestCancelAsks(t *testing.T) {
	tests := map[string]struct {
		matched int
		answer  string
		person  bool
		yes     bool
		acts    bool
		asks    bool
	}{
		"few":      {matched: 10, person: true, acts: true},
		"many-yes": {matched: 21, person: true, answer: "y\n", acts: true, asks: true},
		"many-no":  {matched: 21, person: true, answer: "\n", asks: true},
		"many-eof": {matched: 21, person: true, asks: true},
		"flag":     {matched: 21, person: true, yes: true, acts: true},
		"script":   {matched: 21, acts: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := &clitest.Fake{Matched: tc.matched}
			b := clitest.Start(t, f)
			b.App.Term.In, b.App.In = tc.person, strings.NewReader(tc.answer)
			err := (&cancel.Cancel{Hold: true, Users: []string{"ann"}, States: []string{"PD"}, Yes: tc.yes}).Run(t.Context(), b.App)
			if err != nil {
				t.Fatal(err)
			}
			if asked := strings.Contains(b.Err.String(), "hold "+"42 jobs? [y/N]"); asked != tc.asks {
				t.Errorf("asked: %v; stderr %q", asked, b.Err.String())
			}
			want := ""
			if tc.acts {
				want = `hold {"user":"ann","state":"ONHOLD"};hold {"user":"ann","state":"QUEUED"}`
			}
			if got := strings.Join(f.Actions, ";"); got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
		})
	}
}

const helloJob = `{"name": "hello", "request": {
  "resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1},
  "docker": {"image": "bob:s3cret@registry.example/x:1", "command": "echo hello"}}}`
