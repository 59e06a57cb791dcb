package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/document"
	"gbatch/internal/job"
)

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
			r = &api.SubmitResponse{Project: "vision", Effective: &job.Spec{Name: "hello"}, Estimate: &api.Estimate{At: now.Add(300e9), Nodes: []string{"gpu1", "gpu2"}, Text: "after job 7"}}
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
		o      SubmitOptions
		submit func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error)
		term   Terminal
		output Output
	}{
		"submit-piped":     {stdin: helloJob, submit: ok},
		"submit-terminal":  {stdin: helloJob, submit: ok, term: Terminal{Out: true, Err: true}},
		"submit-held":      {stdin: helloJob, submit: ok, o: SubmitOptions{Hold: true}, term: Terminal{Out: true}},
		"submit-json":      {stdin: helloJob, submit: ok, output: Output{JSON: true}},
		"submit-repeated":  {stdin: helloJob, submit: ok, o: SubmitOptions{Key: "used"}, term: Terminal{Out: true}},
		"submit-dry-run":   {stdin: helloJob, submit: ok, o: SubmitOptions{DryRun: true}},
		"submit-convert":   {stdin: helloJob, o: SubmitOptions{Convert: true}},
		"submit-bad":       {stdin: badJob},
		"submit-not-json":  {stdin: "hello there"},
		"submit-bad-flag":  {stdin: helloJob, o: SubmitOptions{Format: "yaml"}},
		"submit-no-file":   {o: SubmitOptions{File: "none.json"}},
		"submit-too-large": {stdin: `{"name": "` + strings.Repeat("x", document.MaxBytes) + `"}`},
		"submit-server-problems": {stdin: helloJob, submit: refuses(&api.Error{Status: 422, Code: api.CodeInvalidJob, Message: "job is not accepted", Problems: []api.Problem{
			{Path: "request.resources.clusterId", Message: "there is no cluster 7", Hint: "clusters are 1 and 2"}, {Path: "name", Message: "is taken\x1b"}}})},
		"submit-unsatisfiable": {stdin: helloJob, submit: refuses(&api.Error{Status: 422, Code: api.CodeUnsatisfiable, Message: "no node has 12 GPUs; the largest has 8", Hint: "ask for 8 or fewer, or for several nodes"})},
		"submit-denied":        {stdin: helloJob, submit: refuses(&api.Error{Status: 403, Code: api.CodeDenied, Message: "you are not in project vision"})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t, &fake{submit: tc.submit})
			b.app.Term, b.app.Output, b.app.In = tc.term, tc.output, strings.NewReader(tc.stdin)
			if tc.o.File == "" {
				tc.o.File = "-"
			}
			code := b.app.fail(Program{Name: "gsubmit"}, b.app.Submit(t.Context(), tc.o))
			b.golden(t, name, code)
			if strings.Contains(b.out.String()+b.err.String(), "s3cret") {
				t.Error("the registry password was printed")
			}
		})
	}
}

// The controller gets the native document byte for byte (but for blanks), with
// the flags beside it, and the file's name stands before each problem.
func TestSubmitSends(t *testing.T) {
	var got api.SubmitRequest
	var key string
	b := start(t, &fake{submit: func(r *api.SubmitRequest, k string) (*api.SubmitResponse, *api.Error) {
		got, key = *r, k
		return &api.SubmitResponse{Number: 1}, nil
	}})
	file := filepath.Join(t.TempDir(), "hello.json")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbf"+helloJob), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.app.Submit(t.Context(), SubmitOptions{File: file, Project: "p", Hold: true, Key: "k"}); err != nil {
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
	err := b.app.Submit(t.Context(), SubmitOptions{File: file})
	for _, line := range strings.Split(err.Error(), "\n") {
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

// A dead controller is named, and there is a code for it.
func TestDeadController(t *testing.T) {
	commands := map[string]func(context.Context, *App) error{
		"submit": func(ctx context.Context, a *App) error {
			a.In = strings.NewReader(helloJob)
			return a.Submit(ctx, SubmitOptions{File: "-"})
		},
		"queue": func(ctx context.Context, a *App) error { return a.Queue(ctx, QueueOptions{}) },
		"show":  func(ctx context.Context, a *App) error { return a.Show(ctx, []string{"1", "2"}, "") },
		"cancel": func(ctx context.Context, a *App) error {
			return a.Cancel(ctx, CancelOptions{Action: "cancel", IDs: []string{"1"}})
		},
		"log":  func(ctx context.Context, a *App) error { return a.Log(ctx, "1", LogOptions{}) },
		"info": func(ctx context.Context, a *App) error { return a.Info(ctx, InfoOptions{}) },
	}
	for name, run := range commands {
		t.Run(name, func(t *testing.T) {
			b := start(t, nil)
			code := b.app.fail(Program{Name: "prog"}, run(t.Context(), b.app))
			want := "prog: controller at unix://" + b.socket + " does not answer: connect: no such file or directory; is gctld running? try `gctld dev` or set GBATCH_CONTROLLER\n"
			if code != ExitUnreachable || b.err.String() != want {
				t.Errorf("exit %d, stderr %q, want 5 and %q", code, b.err.String(), want)
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
			f := &fake{matched: tc.matched}
			b := start(t, f)
			b.app.Term.In, b.app.In = tc.person, strings.NewReader(tc.answer)
			err := b.app.Cancel(t.Context(), CancelOptions{Action: "hold", Users: []string{"ann"}, States: []string{"PD"}, Yes: tc.yes})
			if err != nil {
				t.Fatal(err)
			}
			if asked := strings.Contains(b.err.String(), "hold "+"42 jobs? [y/N]"); asked != tc.asks {
				t.Errorf("asked: %v; stderr %q", asked, b.err.String())
			}
			want := ""
			if tc.acts {
				want = `hold {"user":"ann","state":"ONHOLD"};hold {"user":"ann","state":"QUEUED"}`
			}
			if got := strings.Join(f.actions, ";"); got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
		})
	}
}

var _ http.Handler = (*fake)(nil)
