package importer

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/job/importer/ccluster"
	"gbatch/internal/job/importer/dstack"
	"gbatch/internal/job/importer/kubernetes"
	"gbatch/internal/job/importer/nvct"
	"gbatch/internal/job/importer/tao"
)

var rewrite = flag.Bool("rewrite", false, "write the expected results of testdata anew")

func TestDetect(t *testing.T) {
	tests := map[string]struct {
		text string
		want Format
	}{
		"native":          {`{"name":"x","request":{}}`, GPULabV2},
		"native-broken":   {`{"name": "x", "request": {`, GPULabV2},
		"native-unknown":  {`{"name":"x"}`, GPULabV2},
		"native-bom":      {"\ufeff \n{\"request\":{}}", GPULabV2},
		"array":           {`[]`, GPULabV2},
		"empty":           {" \n", GPULabV2},
		"version-1":       {`{"jobDefinition":{}}`, gpulabV1},
		"nvct":            {`{"name":"t","gpuSpecification":{"gpu":"H100"},"containerImage":"x"}`, nvct.Source},
		"ccluster":        {`{"name":"t","image_url":"x","completions":3}`, ccluster.Source},
		"tao":             {`{"backend_type": "local-docker", "num_gpu": 1}`, tao.Source},
		"kubernetes-json": {`{"apiVersion":"batch/v1","kind":"Job"}`, kubernetes.Source},
		"kubernetes-yaml": {"---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\n", kubernetes.Source},
		"dstack":          {"type: task\nname: train\ncommands:\n  - python train.py\n", dstack.Source},
		"dstack-quoted":   {"# x\nname: train\ntype: \"task\" \r\n", dstack.Source},
		"slurm":           {"#!/bin/bash\n#SBATCH -N 1\nsrun hostname\n", Slurm},
		"slurm-of-pbs":    {"#PBS -N a\nhostname\n", Slurm},
		"slurm-no-shell":  {"#SBATCH --gpus=1\nhostname\n", Slurm},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Detect([]byte(tc.text))
			if err != nil || got != tc.want {
				t.Errorf("Detect = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	for _, text := range []string{"hello", "a: 1\n", "\x7fELF"} {
		if got, err := Detect([]byte(text)); err == nil {
			t.Errorf("Detect(%q) = %q", text, got)
		}
	}
}

// TestParse reads each document of testdata and compares the result, a job or
// an error, with the file beside it.
func TestParse(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.in")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := result(t, data)
			wantPath := strings.TrimSuffix(path, ".in") + ".txt"
			if *rewrite {
				if err := os.WriteFile(wantPath, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(wantPath)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("result differs from %s (-want +got):\n%s", wantPath, diff)
			}
		})
	}
}

// surroundings are where the files of testdata are submitted.
var surroundings = Options{
	Now: 1772443800000, Zone: time.FixedZone("CET", 3600), // 2026-03-02 10:30
	Env: func(name string) (string, bool) { return "of " + name, name == "HF_HOME" || name == "WANDB_API_KEY" },
}

func result(t *testing.T, data []byte) string {
	sub, err := Parse(data, surroundings)
	if err != nil {
		var ps job.Problems
		if !errors.As(err, &ps) {
			t.Errorf("error is a %T", err)
		}
		return err.Error() + "\n"
	}
	spec, err := json.MarshalIndent(sub.Spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	again, err := job.Parse(spec)
	if err != nil {
		t.Fatalf("the converted job is no native document: %v", err)
	}
	if diff := cmp.Diff(sub.Spec, again.Spec); diff != "" {
		t.Errorf("job changed by its own JSON (-want +got):\n%s", diff)
	}
	var b strings.Builder
	b.Write(spec)
	b.WriteString("\n")
	if sub.Registry != nil {
		b.WriteString("login " + sub.Registry.String() + "\n")
	}
	for _, n := range sub.Notes {
		b.WriteString("note " + n.String() + "\n")
	}
	return b.String()
}

func TestParseForced(t *testing.T) {
	doc := []byte(`{"jobDefinition":{"dockerImage":"debian"}}`)
	if _, err := Parse(doc, Options{Format: GPULabV2}); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("a version 1 document read as version 2: %v", err)
	}
	if _, err := Parse(doc, Options{Format: "toml"}); err == nil || err.Error() != `no format is called "toml": use one of `+join(formats) {
		t.Errorf("an unknown format: %v", err)
	}
}
