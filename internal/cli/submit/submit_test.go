package submit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
)

func TestMain(m *testing.M) { clitest.Main(m) }

const helloJob = `{"name": "hello", "request": {
  "resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1},
  "docker": {"image": "bob:s3cret@registry.example/x:1", "command": "echo hello"}}}`

const badJob = `{"name": "hello", "request": {
  "resources": {"gpus": "two", "cpus": 0, "cpuMemoryGb": 1},
  "docker": {"image": "debian:stable", "comand": "true"}}}`

func TestSubmit(t *testing.T) {
	ok := func(req *api.SubmitRequest, key string) (*api.SubmitResponse, *api.Error) {
		r := &api.SubmitResponse{Number: 12, UUID: "a280f7e8-b1e6-41e9-93a1-ffe9aeb472f8", State: job.Queued, Project: "vision"}
		if req.DryRun {
			r = &api.SubmitResponse{Project: "vision", Effective: &job.Spec{Name: "hello"}, Estimate: &api.Estimate{At: clitest.Now.Add(300e9), Nodes: []string{"gpu1", "gpu2"}, Text: "after job 7"}}
		}
		r.Repeated = key == "used"
		r.Notes = []api.Note{{Path: "request.docker", Message: "something worth saying"}}
		return r, nil
	}
	refuses := func(e *api.Error) func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
		return func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) { return nil, e }
	}
	tests := map[string]struct {
		stdin  string
		o      Submit
		submit func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error)
		term   cli.Terminal
		output cli.Output
	}{
		"submit-piped":     {stdin: helloJob, submit: ok},
		"submit-terminal":  {stdin: helloJob, submit: ok, term: cli.Terminal{Out: true, Err: true}},
		"submit-held":      {stdin: helloJob, submit: ok, o: Submit{flags: flags{Hold: true}}, term: cli.Terminal{Out: true}},
		"submit-json":      {stdin: helloJob, submit: ok, output: cli.Output{JSON: true}},
		"submit-repeated":  {stdin: helloJob, submit: ok, o: Submit{flags: flags{IdempotencyKey: "used"}}, term: cli.Terminal{Out: true}},
		"submit-dry-run":   {stdin: helloJob, submit: ok, o: Submit{flags: flags{DryRun: true}}},
		"submit-convert":   {stdin: helloJob, o: Submit{flags: flags{Convert: true}}},
		"submit-bad":       {stdin: badJob},
		"submit-empty":     {},
		"submit-no-end":    {o: Submit{Overrides: importer.Overrides{Image: "busybox:1"}}},
		"submit-not-json":  {stdin: "hello there"},
		"submit-bad-flag":  {stdin: helloJob, o: Submit{Format: "yaml"}},
		"submit-no-file":   {o: Submit{Files: []string{"none.json"}}},
		"submit-too-large": {stdin: `{"name": "` + strings.Repeat("x", document.MaxBytes) + `"}`},
		"submit-server-problems": {stdin: helloJob, submit: refuses(api.Errorf(api.CodeInvalidJob, "job is not accepted").WithProblems(
			api.Problem{Path: "request.resources.clusterId", Message: "there is no cluster 7", Hint: "clusters are 1 and 2"}, api.Problem{Path: "name", Message: "is taken\x1b"}))},
		"submit-unsatisfiable": {stdin: helloJob, submit: refuses(api.Errorf(api.CodeUnsatisfiable, "no node has 12 GPUs; the largest has 8").
			WithHint("ask for 8 or fewer, or for several nodes"))},
		"submit-denied": {stdin: helloJob, submit: refuses(api.Errorf(api.CodeDenied, "you are not in project vision"))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, &clitest.Fake{Submit: tc.submit})
			b.App.Term, b.App.Output, b.App.In = tc.term, tc.output, strings.NewReader(tc.stdin)
			code := b.App.Finish(cli.Program{Name: "gsubmit"}, tc.o.Run(t.Context(), b.App))
			b.Golden(t, name, code)
			if strings.Contains(b.Out.String()+b.Err.String(), "s3cret") {
				t.Error("the registry password was printed")
			}
		})
	}
}

func TestSubmitSends(t *testing.T) {
	var got api.SubmitRequest
	var key string
	b := clitest.Start(t, &clitest.Fake{Submit: func(r *api.SubmitRequest, k string) (*api.SubmitResponse, *api.Error) {
		got, key = *r, k
		return &api.SubmitResponse{Number: 1}, nil
	}})
	file := filepath.Join(t.TempDir(), "hello.json")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbf"+helloJob), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Submit{Files: []string{file}, flags: flags{Project: "p", Hold: true, IdempotencyKey: "k"}}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	var sent, want any
	if json.Unmarshal(got.Job, &sent) != nil || json.Unmarshal([]byte(helloJob), &want) != nil {
		t.Fatal("not JSON")
	}
	if a, b := mustJSON(sent), mustJSON(want); a != b || got.Project != "p" || !got.Hold || key != "k" {
		t.Errorf("sent %s, project %q, hold %v, key %q", a, got.Project, got.Hold, key)
	}
	if err := os.WriteFile(file, []byte(badJob), 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&Submit{Files: []string{file}}).Run(t.Context(), b.App)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, file+": ") {
			t.Errorf("line %q does not begin with the file's name", line)
		}
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
