package ctld

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// TestSiteTables: names of the site's tables become amounts and an image before
// the job is stored, what the job says itself wins, and unknown names are
// refused with those that there are.
func TestSiteTables(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.InstanceTypes = map[string]site.InstanceType{
			"GPU.H100_1x": {GPUs: 1, GPUModel: []string{"H100"}, CPUs: 16, CPUMemoryGB: 128},
			"cpu":         {CPUs: 2, CPUMemoryGB: 4},
		}
		c.Results = "s3://lab/results"
		c.ImageAliases = map[string]string{"python:3.12": "registry.example.org/python:3.12"}
	})
	send := func(resources, gbatch string) (*api.SubmitResponse, error) {
		doc := `{"name":"a","request":{"resources":` + resources + `,"docker":{"command":"true"}},"gbatch":` + gbatch + `}`
		return s.Submit(t.Context(), &api.SubmitRequest{Job: []byte(doc)}, "")
	}
	r, err := send(`{"gpus":0,"cpus":4}`, `{"instanceType":"GPU.H100_1x","imageAlias":"python:3.12"}`)
	if err != nil {
		t.Fatal(err)
	}
	d := s.job("1")
	want := job.Resources{GPUs: 1, GPUModel: []string{"H100"}, CPUs: 4, CPUMemoryGB: 128}
	if diff := cmp.Diff(want, d.Spec.Request.Resources); diff != "" || d.GPUs != 1 || d.CPUs != 4 || d.MemBytes != 128<<30 {
		t.Errorf("job %d asks for %v GPUs, %d CPUs, %d bytes (-want +got):\n%s", r.Number, d.GPUs, d.CPUs, d.MemBytes, diff)
	}
	if got := d.Spec.Request.Docker.Image; got != "registry.example.org/python:3.12" {
		t.Errorf("image %q", got)
	}
	if r, err = send(`{"gpus":0,"cpus":1,"cpuMemoryGb":1}`, `{"imageAlias":"python:3.12","outputs":[{"path":"/out","uri":"results:///org/model/"}]}`); err != nil {
		t.Fatal(err)
	}
	if got := s.job("2").Spec.Gbatch.Outputs[0].URI; got != "s3://lab/results/org/model/" {
		t.Errorf("results go to %q", got)
	}
	_, err = send(`{}`, `{"instanceType":"GPU.V10O","imageAlias":"pyton"}`)
	var e *api.Error
	if !errors.As(err, &e) || len(e.Problems) != 2 || !strings.Contains(e.Problems[0].Hint, "GPU.H100_1x, cpu") || !strings.Contains(e.Problems[1].Hint, "python:3.12") {
		t.Errorf("unknown names: %v", err)
	}
	if _, err = send(`{}`, `{"instanceType":"cpu","imageAlias":"python:3.12","shmSizeMb":5000}`); err == nil {
		t.Error("more shared memory than memory was taken")
	}
	none := newSite(t, nil)
	_, err = none.Submit(t.Context(), &api.SubmitRequest{Job: []byte(`{"name":"a","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a"}},"gbatch":{"outputs":[{"path":"/out","uri":"results:///m"}]}}`)}, "")
	if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Message != "this site has no place for results" {
		t.Errorf("results without a place: %v", err)
	}
	cfg := s.cfg
	cfg.InstanceTypes = map[string]site.InstanceType{"x": {GPUs: 1.5}}
	cfg.ImageAliases = map[string]string{"x": "u:p@registry.example.org/x", "y": "Not An Image"}
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("a bad table: %v", err)
	}
}
