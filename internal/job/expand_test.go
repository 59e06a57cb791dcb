package job

import (
	"slices"
	"testing"
)

// TestExpandVariables: values of a job's own variables, and its command, have what
// every job is told; without the field they stay as they are.
func TestExpandVariables(t *testing.T) {
	spec := &Spec{Name: "n", Gbatch: &Gbatch{Source: "kubernetes", ExpandVariables: true}}
	spec.Request.Docker.Environment = map[string]string{"SHARD": "s$(JOB_COMPLETION_INDEX)", "PRICE": "$$5", "OTHER": "$(SHARD)"}
	in := EnvInput{Spec: spec, ID: RankID{Job: 7, Task: 3}, Node: "n1", Array: &ArrayTask{Parent: 4, Index: 3, Count: 5}}
	env := Environment(in)
	for _, want := range []string{"SHARD=s3", "PRICE=$5", "OTHER=$(SHARD)"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	if got := ExpandWords(spec, []string{"--at=$(GPULAB_SLAVE_HOSTNAME)", "$(SHARD)"}, env); !slices.Equal(got, []string{"--at=n1", "s3"}) {
		t.Errorf("the command is %q", got)
	}
	spec.Gbatch.ExpandVariables = false
	if got := ExpandWords(spec, []string{"$(SHARD)"}, Environment(in)); got[0] != "$(SHARD)" || !slices.Contains(Environment(in), "PRICE=$$5") {
		t.Errorf("without the field: %q", got)
	}
}
