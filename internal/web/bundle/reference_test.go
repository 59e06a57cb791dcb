package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFields reads tables as the reference of the job document has them.
func TestFields(t *testing.T) {
	got := fieldsOf("## Top level\n\n| field | type | default | meaning |\n|---|---|---|---|\n| `name` | string | required | for people |\n\n" +
		"## gbatch\n\n| field | type | default | meaning |\n|---|---|---|---|\n| `a`, also `b` | `x \\| y` | none | see [launch](#launch) |\n\n" +
		"| value | what |\n|---|---|\n| `no` | field |\n\n" +
		"### retry\n\n| field | type | meaning |\n|---|---|---|\n| `limit` | integer | how often |\n\n" +
		"### inputs and outputs\n\n| field | type | default | meaning |\n|---|---|---|---|\n| `uri` | string | required | where |\n")
	want := []field{
		{"name", "string", "required", "for people"},
		{"gbatch.a", "`x | y`", "none", "see launch"}, {"gbatch.b", "`x | y`", "none", "see launch"},
		{"gbatch.retry.limit", "integer", "", "how often"},
		{"gbatch.inputs.uri", "string", "required", "where"}, {"gbatch.outputs.uri", "string", "required", "where"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestReference looks for fields of each kind of section in the reference itself.
func TestReference(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/job-format.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range fieldsOf(string(raw)) {
		if f.Type == "" || f.Meaning == "" || known[f.Path] {
			t.Errorf("%+v is not whole, or is there twice", f)
		}
		known[f.Path] = true
	}
	for _, path := range []string{"name", "owner.projectUrn", "request.resources.gpus", "request.docker.storage.hostPath", "request.docker.portMappings.hostPort",
		"request.scheduling.killableAfter", "request.extra.sshPubKeys", "gbatch.nodes", "gbatch.launch.tasks", "gbatch.dependencies.type", "gbatch.outputs.when"} {
		if !known[path] {
			t.Errorf("%s is not found", path)
		}
	}
}
