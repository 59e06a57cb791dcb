package gbatch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// suite is tests of one kind of attack. Its cases are the elements of the largest
// list that each function or variable has, or what a pattern finds in files.
type suite struct {
	what    string
	in      []string // FILE NAME
	pattern string   // of a line, in files of glob
	glob    string
	least   int
}

var suites = []suite{
	{what: "job files in all formats, and command lines of `sbatch`: `internal/job/importer/hostiletest`", pattern: `(?m)^=== `, glob: "internal/job/importer/hostiletest/corpus/*.txt", least: 200},
	{what: "layers, images and registries: `TestHostileLayers`, `TestHostileImages`, `TestHostileRegistry`", in: []string{"oci/image/hostile_test.go hostileLayers", "internal/noded/hostile_test.go TestHostileImages",
		"oci/image/hostile_registry_test.go hostileRegistries"}, least: 40},
	{what: "jobs on a node: `TestBlame`, `TestHostileJobs`", in: []string{"oci/hostile_test.go TestBlame", "internal/noded/hostile_test.go TestHostileJobs"}, least: 40},
	{what: "requests of a user with a token: `TestHostileUser`", in: []string{"internal/ctld/hostile_user_test.go TestHostileUser"}, least: 40},
	{what: "reports of a node: `TestHostileNode`", in: []string{"internal/ctld/hostile_node_test.go TestHostileNode"}, least: 20},
	{what: "routes, each asked by nine kinds of caller: `TestEveryRoute`", in: []string{"internal/ctld/access_test.go matrix"}, least: 60},
	{what: "directories that go along with a job: `TestHostileTrees`", in: []string{"internal/tree/tree_test.go TestHostileTrees"}, least: 10},
	{what: "files of a Slurm site: `TestHostileSites`, `TestImportIncludes`", in: []string{"internal/slurmsite/hostile_test.go hostileSites", "internal/cli/adm/importslurm_test.go TestImportIncludes"}, least: 40},
	{what: "fields of CDI files: `TestCDIFields`", in: []string{"internal/gpu/cdi_fields_test.go TestCDIFields"}, least: 30},
	{what: "fuzzers, a minute each", pattern: `(?m)^func Fuzz`, glob: "**_test.go", least: 50},
}

// TestSuitesAreCounted holds the table of docs/security.md to the tests that there
// are, and these to how many were promised.
func TestSuitesAreCounted(t *testing.T) {
	doc, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		n, told := s.count(t), 0
		if m := regexp.MustCompile(`\n\| ([0-9]+) \| ` + regexp.QuoteMeta(s.what) + ` \|\n`).FindSubmatch(doc); m != nil {
			told, _ = strconv.Atoi(string(m[1]))
		}
		if told < s.least || told > n {
			t.Errorf("docs/security.md says that there are at least %d, there are %d, and %d were promised:\n| %d | %s |", told, n, s.least, n, s.what)
		}
	}
}

func (s suite) count(t *testing.T) (n int) {
	t.Helper()
	if s.pattern == "" {
		for _, place := range s.in {
			name, in, _ := strings.Cut(place, " ")
			n += elements(t, name, in)
		}
		return n
	}
	form := regexp.MustCompile(s.pattern)
	files(t, func(name string, body []byte) {
		fits, _ := filepath.Match(s.glob, name)
		if suffix, all := strings.CutPrefix(s.glob, "**"); fits || all && strings.HasSuffix(name, suffix) {
			n += len(form.FindAllIndex(body, -1))
		}
	})
	return n
}

// elements is the length of the longest list or map that a file writes out in a
// function or variable.
func elements(t *testing.T, name, in string) (most int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		var at []ast.Node
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == in {
				at = append(at, d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && v.Names[0].Name == in {
					at = append(at, v)
				}
			}
		}
		for _, n := range at {
			ast.Inspect(n, func(n ast.Node) bool {
				if list, ok := n.(*ast.CompositeLit); ok {
					most = max(most, len(list.Elts))
				}
				return true
			})
		}
	}
	if most == 0 {
		t.Errorf("%s has no %s", name, in)
	}
	return most
}

var (
	testNamed   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	testDefined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9]+)\(`)
)

// TestTestsInDocuments: the tests that documents call as witnesses are there.
func TestTestsInDocuments(t *testing.T) {
	there, told := map[string]bool{}, map[string]string{}
	files(t, func(name string, body []byte) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			for _, m := range testDefined.FindAllSubmatch(body, -1) {
				there[string(m[1])] = true
			}
		case strings.HasSuffix(name, ".md") && name != "CHANGELOG.md":
			for _, m := range testNamed.FindAllSubmatch(body, -1) {
				told[string(m[1])] = name
			}
		}
	})
	for test, name := range told {
		if !there[test] {
			t.Errorf("%s names %s, and there is no such test", name, test)
		}
	}
}
