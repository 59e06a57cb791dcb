package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSecretFiles: strings stay strings, objects objects, and what a name
// cannot be is left out of the variables.
func TestSecretFiles(t *testing.T) {
	values := map[string]string{"TOKEN": "hunter2", "key.json": ` {"a":{"b":[1,"x"]}}`, "NOT": `{"a":`, "GBATCH_RANK": "7", "secrets.json": "mine", "n": "12"}
	var got map[string]any
	if err := json.Unmarshal(SecretFiles(values)[secretsFileName], &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"TOKEN": "hunter2", "key.json": map[string]any{"a": map[string]any{"b": []any{float64(1), "x"}}}, "NOT": `{"a":`,
		"GBATCH_RANK": "7", "secrets.json": "mine", "n": "12"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("hunter2", string(SecretFiles(values)["TOKEN"])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`NOT={"a":`, "TOKEN=hunter2", "n=12"}, SecretEnvironment(values)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestCheckSecrets: what is missing or cannot be used is named, and no value is
// quoted.
func TestCheckSecrets(t *testing.T) {
	s := Submission{Spec: Spec{Gbatch: &Gbatch{Secrets: []Secret{{Name: "A"}, {Name: "B"}, {Name: "C"}}}}}
	s.SetSecrets(map[string]string{"B": "hunter2\x00", "D": strings.Repeat("x", maxSecretBytes), "C": "fine"})
	err := s.Spec.CheckSecrets(s.Secrets)
	want := `gbatch.secrets[0]: secret A has no value; give it with gsubmit --secret A, which takes it from the environment, or --secret A@FILE
gbatch.secrets[1]: secret B: its value must not contain a zero byte`
	if diff := cmp.Diff(want, strings.TrimSpace(problemLines(err))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	many := map[string]string{}
	for n := range strings.SplitSeq("abcdefghijklmnopq", "") {
		many[n] = strings.Repeat("x", maxSecretBytes)
	}
	var big Submission
	big.SetSecrets(many)
	if err := big.Spec.CheckSecrets(big.Secrets); err == nil || !strings.Contains(err.Error(), "bytes together") {
		t.Errorf("too much together: %v", err)
	}
	if err := (&Spec{}).CheckSecrets(nil); err != nil {
		t.Error(err)
	}
}

// TestSecretAndVariable: who gives a variable and a secret one name hears which one the
// program gets.
func TestSecretAndVariable(t *testing.T) {
	s, err := Parse([]byte(`{"name": "n", "request": {"resources": {"cpus": 1, "cpuMemoryGb": 1, "gpus": 0}, "docker": {"image": "i", "command": "true",
		"environment": {"TOKEN": "seen by all", "OTHER": "x"}}, "scheduling": {}}, "gbatch": {"secrets": ["TOKEN", "MORE"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Note{{Path: "gbatch.secrets", Message: `name "TOKEN", as request.docker.environment does: the program gets the secret`}}
	if diff := cmp.Diff(want, s.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func problemLines(err error) string {
	var b strings.Builder
	for _, p := range err.(Problems) {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}
