package gbatch

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// source is one Go file of the tree.
type source struct {
	name string
	text []byte
	file *ast.File
	fset *token.FileSet
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// files calls f with each file of the tree that git does not ignore, by its
// path from here.
func files(t *testing.T, f func(name string, text []byte)) {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("SKIPPED: this is no git checkout: ", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		f(name, text)
	}
}

// sources are the Go files of the tree, parsed once for all tests, which change nothing of them.
func sources(t *testing.T) []source {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	files(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" {
			return
		}
		s := source{name: name, text: text, fset: token.NewFileSet()}
		var err error
		if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments); err != nil {
			t.Fatalf("parse: %v", err)
		}
		parsed = append(parsed, s)
	})
	return parsed
}

var parsed []source
