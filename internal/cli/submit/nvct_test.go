package submit

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// TestSubmitNVCT proves that a task of flags reaches the controller as a native
// job with its secrets, that the file's fields stand where flags say nothing,
// and that a secret is never printed.
func TestSubmitNVCT(t *testing.T) {
	var sent job.Submission
	b := clitest.Start(t, &clitest.Fake{Submit: func(req *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
		var err error
		if sent, err = job.Parse(req.Job); err != nil {
			t.Error(err)
		}
		return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
	}})
	file := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(file, []byte("s3cret=2"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.App.In = strings.NewReader(`{ "name": "file", "containerImage": "debian", "secrets": [{ "name": "A", "value": "s3cret" }] }`)
	err := (&NVCT{InputFile: "-", ContainerArgs: "--epochs 10",
		Flags: nvct.Flags{GPU: "H100", InstanceType: "GPU.H100_2x"}, Secrets: []string{"B@" + file},
	}).Run(t.Context(), b.App)
	if err != nil {
		t.Fatal(err)
	}
	if s := sent.Spec; s.Name != "file" || s.Request.Resources.GPUs != 2 || len(s.Request.Docker.Command.Argv) != 2 || sent.Secrets["A"] != "s3cret" || sent.Secrets["B"] != "s3cret=2" {
		t.Errorf("sent %+v", s)
	}
	if strings.Contains(b.Out.String()+b.Err.String(), "s3cret") {
		t.Error("a secret was printed")
	}

	err = (&NVCT{Flags: nvct.Flags{Name: "x"}}).Run(t.Context(), b.App)
	want := "gsubmit: gpuSpecification: is required and missing\ngsubmit: containerImage: is required and missing"
	if err == nil || err.Error() != want || exit.Code(err) != exit.Usage {
		t.Errorf("without a file: %v", err)
	}
}

// TestCallersVariables proves that a file's variable without a value takes that of
// --secret or --env before the process's.
func TestCallersVariables(t *testing.T) {
	t.Setenv("FROM_PROCESS", "process")
	t.Setenv("FROM_SECRET", "process")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("flag"), 0o600); err != nil {
		t.Fatal(err)
	}
	var sent job.Submission
	b := clitest.Start(t, &clitest.Fake{Submit: func(req *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
		var err error
		if sent, err = job.Parse(req.Job); err != nil {
			t.Error(err)
		}
		return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
	}})
	b.App.In = strings.NewReader("type: task\nimage: debian\ncommands: [env]\nenv: [FROM_PROCESS, FROM_SECRET, FROM_ENV]\n")
	o := Submit{Files: []string{"-"}, flags: flags{Secret: []string{"FROM_SECRET@" + file}}, Overrides: importer.Overrides{Env: []string{"FROM_ENV=flag"}}}
	if err := o.Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"FROM_PROCESS": "process", "FROM_SECRET": "flag", "FROM_ENV": "flag"}
	if !maps.Equal(sent.Secrets, want) {
		t.Errorf("sent the secrets %v, want %v", sent.Secrets, want)
	}
}

// TestNothingSecretOnTheCommandLine: values that everybody on the machine could read
// are refused before anything is sent, and not printed.
func TestNothingSecretOnTheCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(*cli.App) error
		want string
	}{
		"secret": {func(a *cli.App) error {
			return (&Submit{Files: []string{"-"}, flags: flags{Secret: []string{"A=hunter2"}}}).Run(t.Context(), a)
		}, "A@FILE"},
		"of nvct": {func(a *cli.App) error {
			return (&NVCT{Flags: nvct.Flags{Name: "x"}, Secrets: []string{"A=hunter2"}}).Run(t.Context(), a)
		}, "A@FILE"},
		"registry": {func(a *cli.App) error {
			return (&Submit{Files: []string{"-"}, Overrides: importer.Overrides{Image: "bob:hunter2@reg.example/a:1"}}).Run(t.Context(), a)
		}, "reg.example/a:1"},
		"nvct's": {func(a *cli.App) error {
			return (&NVCT{Flags: nvct.Flags{Image: "bob:hunter2@reg.example/a:1"}}).Run(t.Context(), a)
		}, "reg.example/a:1"},
		"the input": {func(a *cli.App) error {
			return (&Submit{Files: []string{"-"}, flags: flags{Secret: []string{"A@-"}}}).Run(t.Context(), a)
		}, "standard input is needed"},
	} {
		b := clitest.Start(t, &clitest.Fake{Submit: func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
			t.Errorf("%s: it was sent", name)
			return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
		}})
		b.App.In = strings.NewReader("type: task\nimage: debian\ncommands: [env]\n")
		err := tc.run(b.App)
		if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error()+b.Err.String(), "hunter2") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	b := clitest.Start(t, &clitest.Fake{})
	b.App.In = strings.NewReader("type: task\nimage: debian\ncommands: [env]\n")
	err := (&Submit{Files: []string{"-"}, flags: flags{Convert: true}, Overrides: importer.Overrides{Env: []string{"DB_PASSWORD=hunter2", "TOKENIZERS=4"}}}).Run(t.Context(), b.App)
	if text := b.Err.String(); err != nil || !strings.Contains(text, "--secret DB_PASSWORD") || strings.Contains(text, "hunter2") || strings.Contains(text, "TOKENIZERS") {
		t.Errorf("a password as a variable: %v, %s", err, text)
	}
}

// TestConvertReadsBack proves that what --convert prints is the same job again.
func TestConvertReadsBack(t *testing.T) {
	for name, doc := range map[string]string{
		"dstack": "type: task\nname: train\nnodes: 2\ncommands: [a, 'b &']\nresources: {gpu: 'A100:80GB:2', memory: 64GB, shm_size: 8GB}\nretry: true\nports: [80]\n",
		"nvct":   `{ "name": "t", "gpuSpecification": { "gpu": "A100", "instanceType": "GPU.A100_8x" }, "containerImage": "debian", "containerArgs": "-x 'a b'", "tags": ["x"] }`,
	} {
		convert := func(text string) string {
			b := clitest.Start(t, &clitest.Fake{})
			b.App.In = strings.NewReader(text)
			if err := (&Submit{Files: []string{"-"}, flags: flags{Convert: true}}).Run(t.Context(), b.App); err != nil {
				t.Fatal(name, err)
			}
			return b.Out.String()
		}
		once := convert(doc)
		if again := convert(once); again != once || !strings.Contains(once, `"source": "`+name+`"`) {
			t.Errorf("%s: converted to\n%s\nand that to\n%s", name, once, again)
		}
	}
}
