package gbatch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"gbatch/internal/job/importer"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	mdFence   = regexp.MustCompile("(?ms)^```.*?^```")
)

// TestLinksInDocuments follows every link between files, to the heading too
// where it names one.
func TestLinksInDocuments(t *testing.T) {
	headings := map[string][]string{} // of each document that a link leads to
	files(t, func(name string, body []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range mdLink.FindAllStringSubmatch(mdFence.ReplaceAllString(string(body), ""), -1) {
			to := name
			if m[1] != "" {
				to = path.Join(path.Dir(name), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if m[2] == "" {
				continue
			}
			if headings[to] == nil {
				headings[to] = anchors(t, to)
			}
			if !slices.Contains(headings[to], m[2]) {
				t.Errorf("%s links to %s%s: there is no such heading", name, m[1], m[2])
			}
		}
	})
}

// anchors are what links to a document's headings end in, as GitHub and others
// make them.
func anchors(t *testing.T, name string) []string {
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range mdHeading.FindAllStringSubmatch(mdFence.ReplaceAllString(string(body), ""), -1) {
		a := "#" + strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		n := a
		for i := 1; slices.Contains(out, n); i++ {
			n = a + "-" + strconv.Itoa(i)
		}
		out = append(out, n)
	}
	return out
}

// TestEveryPackageIsInTheTable looks for each package in the table of
// ARCHITECTURE.md; what only tests use may be left out.
func TestEveryPackageIsInTheTable(t *testing.T) {
	body, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		name := p.short()
		if !strings.HasPrefix(p.ImportPath, module) || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "scripts/") || strings.HasSuffix(name, "test") {
			continue
		}
		if !strings.Contains(string(body), "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md: package %s is not in the table", name)
		}
	}
}

var jsonBlock = regexp.MustCompile("(?ms)^```json\n(.*?)^```")

// TestExamplesAreJobs reads the example files, and what documents show as a
// job: a block in JSON that is an object, or that is gbatch's part of one.
func TestExamplesAreJobs(t *testing.T) {
	names, err := filepath.Glob("examples/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("find examples: %v, %v", names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		isJob(t, name, data)
	}
	files(t, func(name string, body []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range jsonBlock.FindAllSubmatch(body, -1) {
			text := string(m[1])
			if strings.HasPrefix(text, `"gbatch"`) {
				text = `{"name": "x", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "x"},
					"scheduling": {"maxDuration": "1 hour"}},` + strings.ReplaceAll(text, `"sha256": "..."`, `"sha256": null`) + `}`
			}
			isJob(t, name, []byte(text))
		}
	})
}

func isJob(t *testing.T, name string, data []byte) {
	format, err := importer.Detect(data)
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, data)
		return
	}
	if _, err := importer.Parse(data, importer.Options{Format: format}); err != nil {
		t.Errorf("%s: %v\n%s", name, err, data)
	}
}
