package nvct

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestSecrets looks for the values, which no job and no message shows.
func TestSecrets(t *testing.T) {
	data, err := os.ReadFile("../testdata/nvct-full.in")
	if err != nil {
		t.Fatal(err)
	}
	sub, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"HF_TOKEN": "hf-1", "gcp.json": `{"a":[1,2.5,true,null],"b":"c\"d"}`, "PLAIN": "a=b"}
	if diff := cmp.Diff(want, sub.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// TestFlags proves that flags win over the file, and a problem names the flag.
func TestFlags(t *testing.T) {
	file := []byte(`{ "name": "file", "gpuSpecification": { "gpu": "A100", "instanceType": "GPU.A100_8x", "backend": "GFN" }, "containerImage": "debian",
		"containerArgs": "a b", "containerEnvironment": [{ "key": "A", "value": "1" }], "tags": ["old"], "maxRuntimeDuration": "PT1H",
		"secrets": [{ "name": "X", "value": "file" }, { "name": "Y", "value": "file" }] }`)
	flags := Flags{
		Name: "flag", GPU: "H100", InstanceType: "GPU.H100_2x", ContainerArgs: "--n 'x y'", ContainerEnv: []string{`"B=1,2=3"`},
		Tags: []string{"new"}, MaxRuntime: "PT2H", Models: []string{"m:1:s3://b/m/"},
	}
	sub, err := ParseFlags(file, flags)
	if err != nil {
		t.Fatal(err)
	}
	s := sub.Spec
	got := []any{s.Name, s.Request.Resources.GPUModel, s.Request.Resources.GPUs, s.Gbatch.AnyFeatures, s.Request.Docker.Command.Argv,
		s.Request.Docker.Environment, s.Gbatch.Labels, s.Request.Scheduling.MaxDuration, s.Gbatch.Inputs, sub.Secrets}
	want := []any{"flag", []string{"H100"}, 2.0, [][]string{{"backend=GFN"}}, []string{"--n", "x y"},
		map[string]string{"B": "1,2=3"}, map[string]string{"new": ""}, job.Duration(7200),
		[]job.Input{{URI: "s3://b/m/", Path: "/config/models/m", Cache: true}}, map[string]string{"X": "file", "Y": "file"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}

	_, err = ParseFlags(nil, Flags{Name: "a b", GPU: "H100", ContainerEnv: []string{"A"}, MaxRuntime: "2h", HelmChart: "x", LogsTelemetryID: "y"})
	message := `5 problems:
  gpuSpecification.instanceType: is required and missing
  --name: is "a b": want 1 to 128 letters, digits, - and _, the first a letter or digit
  --container-env.value: is required and missing
  --helm-chart: is not supported; gbatch runs containers: give "containerImage" the image that the chart runs; a chart of several containers on one node has no equivalent
  --max-runtime: is "2h": want a duration of ISO 8601, such as "PT4H30M", "PT90S" or "P7D"`
	if err == nil || err.Error() != message {
		t.Errorf("problems: %v", err)
	}
}
