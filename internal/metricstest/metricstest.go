// Package metricstest checks daemons' metrics for tests: against Prometheus's
// own tool, and against the list in the documentation. It is no part of any
// program.
package metricstest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Promtool is the path of promtool; the test is skipped where there is none.
func Promtool(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: promtool is missing: install the package prometheus")
	}
	return path
}

// Lint has promtool look at the text of a scrape.
func Lint(t testing.TB, scrape string) {
	t.Helper()
	cmd := exec.Command(Promtool(t), "check", "metrics")
	cmd.Stdin = strings.NewReader(scrape)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*?)", (?:unit: "[^"]*", )?constLabels: \{.*\}, variableLabels: \{([^}]*)\}\}$`)

// read is what a collector describes whose names begin with prefix: name, help
// and labels, by name.
func read(c prometheus.Collector, prefix string) [][]string {
	ch := make(chan *prometheus.Desc)
	go func() { // ends when all is read, below
		defer close(ch)
		c.Describe(ch)
	}()
	var out [][]string
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			panic("description of a metric in an unknown form: " + d.String())
		}
		if strings.HasPrefix(m[1], prefix) {
			out = append(out, m[1:])
		}
	}
	slices.SortFunc(out, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return out
}

var update = flag.Bool("update", false, "write the lists of metrics in the documentation anew")

// List compares the list of metrics in a document, between two marks that name
// the prefix, with the collector's that begin with it.
func List(t *testing.T, file, prefix string, c prometheus.Collector) {
	t.Helper()
	var list strings.Builder
	list.WriteString("| metric | labels | what |\n|---|---|---|\n")
	for _, m := range read(c, prefix) {
		labels := ""
		if m[2] != "" {
			labels = "`" + strings.ReplaceAll(m[2], ",", "`, `") + "`"
		}
		fmt.Fprintf(&list, "| `%s` | %s | %s |\n", m[0], labels, strings.ReplaceAll(m[1], "|", "\\|"))
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+prefix+" -->\n", "<!-- end of "+prefix+" -->"
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s: no list between %q and %q", file, begin, end)
	case old == list.String():
	case !*update:
		t.Errorf("%s: the list of %s is not what is exported: write it anew by `go test -run %s -update`", file, prefix, t.Name())
	default:
		if err := os.WriteFile(file, []byte(head+begin+list.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
