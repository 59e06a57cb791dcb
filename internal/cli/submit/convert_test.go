package submit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli/clitest"
	"gbatch/internal/job/importer"
)

// TestConvertSeveral proves that all jobs of a file are printed, one in a line, and that
// each line is its job again.
func TestConvertSeveral(t *testing.T) {
	part := func(name string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + "}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: debian, command: [echo, " + name + "]}]}}}\n"
	}
	b := clitest.Start(t, &clitest.Fake{})
	b.App.In = strings.NewReader(part("first") + "---\n" + strings.Replace(part("second"), "{name: second}", "{name: second, namespace: x}", 1))
	if err := (&Submit{Files: []string{"-"}, flags: flags{Convert: true}}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(b.Out.String()) {
		sub, err := importer.Parse([]byte(line), importer.Options{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, line)
		}
		names = append(names, sub.Spec.Name+" "+strings.Join(sub.Spec.Gbatch.Entrypoint, " "))
	}
	if said := b.Err.String(); !strings.Contains(said, "second:\nnote: metadata.namespace") {
		t.Errorf("it does not say whose the notes are: %s", said)
	}
	if diff := cmp.Diff([]string{"first echo first", "second echo second"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
