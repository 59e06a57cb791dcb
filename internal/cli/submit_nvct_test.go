package cli

import (
	"maps"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// TestSubmitNVCT proves that a task of flags reaches the controller as a native
// job with its secrets, that the file's fields stand where flags say nothing,
// and that a secret is never printed.
func TestSubmitNVCT(t *testing.T) {
	var sent job.Submission
	b := start(t, &fake{submit: func(req *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
		var err error
		if sent, err = job.Parse(req.Job); err != nil {
			t.Error(err)
		}
		return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
	}})
	b.app.In = strings.NewReader(`{ "name": "file", "containerImage": "debian", "secrets": [{ "name": "A", "value": "s3cret" }] }`)
	err := b.app.Submit(t.Context(), SubmitOptions{File: "-", NVCT: &nvct.Flags{
		GPU: "H100", InstanceType: "GPU.H100_2x", ContainerArgs: "--epochs 10", Secrets: []string{"B=s3cret=2"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if s := sent.Spec; s.Name != "file" || s.Request.Resources.GPUs != 2 || len(s.Request.Docker.Command.Argv) != 2 || sent.Secrets["A"] != "s3cret" || sent.Secrets["B"] != "s3cret=2" {
		t.Errorf("sent %+v", s)
	}
	if strings.Contains(b.out.String()+b.err.String(), "s3cret") {
		t.Error("a secret was printed")
	}

	err = b.app.Submit(t.Context(), SubmitOptions{NVCT: &nvct.Flags{Name: "x"}})
	want := "gsubmit: gpuSpecification: is required and missing\ngsubmit: containerImage: is required and missing"
	if err == nil || err.Error() != want || ExitCode(err) != ExitUsage {
		t.Errorf("without a file: %v", err)
	}
}

// TestCallersVariables proves that a file's variable without a value takes that of
// --secret or --env before the process's.
func TestCallersVariables(t *testing.T) {
	t.Setenv("FROM_PROCESS", "process")
	t.Setenv("FROM_SECRET", "process")
	var sent job.Submission
	b := start(t, &fake{submit: func(req *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
		var err error
		if sent, err = job.Parse(req.Job); err != nil {
			t.Error(err)
		}
		return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
	}})
	b.app.In = strings.NewReader("type: task\nimage: debian\ncommands: [env]\nenv: [FROM_PROCESS, FROM_SECRET, FROM_ENV]\n")
	o := SubmitOptions{File: "-", Secrets: []string{"FROM_SECRET=flag"}, Overrides: importer.Overrides{Env: []string{"FROM_ENV=flag"}}}
	if err := b.app.Submit(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"FROM_PROCESS": "process", "FROM_SECRET": "flag", "FROM_ENV": "flag"}
	if !maps.Equal(sent.Secrets, want) {
		t.Errorf("sent the secrets %v, want %v", sent.Secrets, want)
	}
}

// TestConvertReadsBack proves that what --convert prints is the same job again.
func TestConvertReadsBack(t *testing.T) {
	for name, doc := range map[string]string{
		"dstack": "type: task\nname: train\nnodes: 2\ncommands: [a, 'b &']\nresources: {gpu: 'A100:80GB:2', memory: 64GB, shm_size: 8GB}\nretry: true\nports: [80]\n",
		"nvct":   `{ "name": "t", "gpuSpecification": { "gpu": "A100", "instanceType": "GPU.A100_8x" }, "containerImage": "debian", "containerArgs": "-x 'a b'", "tags": ["x"] }`,
	} {
		convert := func(text string) string {
			b := start(t, &fake{})
			b.app.In = strings.NewReader(text)
			if err := b.app.Submit(t.Context(), SubmitOptions{File: "-", Convert: true}); err != nil {
				t.Fatal(name, err)
			}
			return b.out.String()
		}
		once := convert(doc)
		if again := convert(once); again != once || !strings.Contains(once, `"source": "`+name+`"`) {
			t.Errorf("%s: converted to\n%s\nand that to\n%s", name, once, again)
		}
	}
}
