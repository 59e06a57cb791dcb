//go:build !race

package importer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gbatch/internal/document"
)

const (
	script = "#!/bin/sh\n"
	jobOf  = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, command: [c]}]}}}\n---\n"
	podOf  = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, "
)

// laborious are files as long as they may be, each with what would take the most
// work if it was done anew for each line, entry or document: what is repeated, and
// what stands around it.
var laborious = map[string]struct{ begin, again, end string }{
	"options that are unknown":   {script, "#SBATCH --fooo\n", ""},
	"options with a note":        {script, "#SBATCH --mem-bind=a\n", ""},
	"options that are wrong":     {script, "#SBATCH --mem=a\n", ""},
	"options that are refused":   {script, "#SBATCH --wrap='a' # c\n", ""},
	"lists of nodes":             {script + "#SBATCH -w ", "n[0-9999],", "n\n"},
	"tasks":                      {script + "#SBATCH -a ", "1,", "1\n"},
	"dependencies":               {script + "#SBATCH -d ", "afterok:1,", "singleton\n"},
	"licences":                   {script + "#SBATCH -L ", "a:1,", "b\n"},
	"documents":                  {jobOf, "a\n---\n", ""},
	"documents after many lines": {jobOf + strings.Repeat("\n", document.MaxBytes/2), "a\n---\n", ""},
	"jobs":                       {"", jobOf, ""},
	"variables":                  {podOf + "env: [", "{name: A, value: $(A)},", "{name: 1x, value: a}]}]}}}\n"},
	"values in arguments":        {podOf + "env: [{name: A, value: '" + strings.Repeat("y", 10000) + "'}], command: [", "'$(A)$(A)$(A)$(A)',", "a]}]}}}\n"},
	"members that are unknown":   {"type: task\ncommands: [a]\n", "k: 1\n", ""},
	"values":                     {"type: task\nx:\n", " - - - - -\n", ""},
	"secrets":                    {"type: task\ncommands:\n", "  - echo ${{ secrets.a }}\n", ""},
	"ports":                      {"type: task\ncommands: [a]\nports:\n", " - '99999:80'\n", ""},
	"groups":                     {"type: task\ngroups:\n", " - {commands: [a], ports: ['80:80']}\n", ""},
	"addresses in commands":      {"type: task\ngroups:\n - nodes: 1\n   commands:\n", "   - '${{ groups[0].nodes[0].IP_ADDRESS }}'\n", ""},
	"files of a config map":      {podOf + "volumeMounts: [", "{name: v, mountPath: /a},", "]}], volumes: [{name: v, configMap: {name: m}}]}}}\n---\n" + manyKeys},
	"GPUs":                       {"type: task\nresources: {gpu: '", "A100:1..2:40GB,", "'}\n"},
}

// manyKeys is a config map that takes half of a document.
var manyKeys = func() string {
	b := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n")
	for i := 0; len(b) < document.MaxBytes/2; i++ {
		b = fmt.Appendf(b, " k%d: v\n", i)
	}
	return string(b)
}()

// TestWorkIsBounded: no file makes its reader, which may be a controller, work for
// long. What is allocated stands for the work, as time depends on the machine. Under the
// race detector the standard library allocates at random.
func TestWorkIsBounded(t *testing.T) {
	const most = 400 << 20
	for name, part := range laborious {
		text := part.begin + strings.Repeat(part.again, (document.MaxBytes-len(part.begin)-len(part.end))/len(part.again)) + part.end
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		format, err := Detect([]byte(text))
		if err == nil {
			_, err = Parse([]byte(text), Options{Format: format, Image: "a"})
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: allocated %d MiB, want at most %d", name, got>>20, most>>20)
		}
		if err == nil {
			t.Errorf("%s: %d bytes are taken for a job", name, len(text))
		}
	}
}
