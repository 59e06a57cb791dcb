package job

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the expected results of testdata anew")

// golden compares got with the file at path, or writes it with -rewrite.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("result differs from %s (-want +got):\n%s", path, diff)
	}
}

func files(t testing.TB, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	return all
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestGood parses each good document, compares the whole result with the file
// beside it, and reads its JSON back to the same job.
func TestGood(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			sub, err := Parse(read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".json")+".txt", describe(t, sub))
			roundTrip(t, sub)
		})
	}
}

// describe shows all that Parse returned: the job, the argv, login and notes.
func describe(t testing.TB, sub Submission) string {
	t.Helper()
	var b strings.Builder
	spec, err := json.MarshalIndent(sub.Spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	args, shell, err := sub.Spec.Request.Docker.Command.Args()
	if err != nil {
		t.Fatal(err)
	}
	argv, _ := json.Marshal(args)
	b.Write(spec)
	b.WriteString("\nargs " + string(argv))
	if shell {
		b.WriteString(" by a shell")
	}
	b.WriteString("\n")
	if sub.Registry != nil {
		b.WriteString("login " + sub.Registry.String() + "\n")
	}
	for _, n := range sub.Notes {
		b.WriteString("note " + n.String() + "\n")
	}
	return b.String()
}

// roundTrip checks that a job's JSON is a document of the same job.
func roundTrip(t testing.TB, sub Submission) {
	t.Helper()
	data, err := json.Marshal(sub.Spec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatalf("parse what was marshalled: %v\n%s", err, data)
	}
	if diff := cmp.Diff(sub.Spec, again.Spec); diff != "" {
		t.Errorf("job changed by its own JSON (-want +got):\n%s", diff)
	}
	if again.Registry != nil {
		t.Error("a marshalled job has credentials")
	}
	document, err := sub.Document()
	if err != nil {
		t.Fatal(err)
	}
	if again, err = Parse(document); err != nil {
		t.Fatalf("parse the document of a submission: %v", err)
	}
	if diff := cmp.Diff(sub.Spec, again.Spec); diff != "" || (sub.Registry == nil) != (again.Registry == nil) {
		t.Errorf("job changed by its document (-want +got):\n%s", diff)
	}
	if sub.Registry != nil && *sub.Registry != *again.Registry {
		t.Error("credentials changed by the document")
	}
	var direct Spec
	if err := json.Unmarshal(data, &direct); err != nil {
		t.Fatalf("unmarshal what was marshalled: %v\n%s", err, data)
	}
	if diff := cmp.Diff(sub.Spec, direct); diff != "" {
		t.Errorf("job changed by encoding/json (-want +got):\n%s", diff)
	}
}

// TestBad compares the problems of each bad document with the file beside it.
func TestBad(t *testing.T) {
	for _, path := range files(t, "testdata/bad/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			sub, err := Parse(read(t, path))
			if err == nil {
				t.Fatalf("accepted: %s", describe(t, sub))
			}
			golden(t, strings.TrimSuffix(path, ".json")+".txt", err.Error()+"\n")
		})
	}
}
