package gbatch

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// What one reader can hold: a type's verbs and a package's lines, tests apart.
const (
	maxMethods      = 60
	maxPackageLines = 5000
)

func TestTypesAndPackagesStaySmall(t *testing.T) {
	methods, lines := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		dir := path.Dir(s.name)
		lines[dir] += bytes.Count(s.text, []byte("\n"))
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[dir+"."+receiver(f)]++
			}
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, more than %d: which parts is it made of?", name, n, maxMethods)
		}
	}
	for dir, n := range lines {
		if n > maxPackageLines {
			t.Errorf("%s has %d lines, more than %d: which packages are in it?", dir, n, maxPackageLines)
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	switch k := kind.(type) {
	case *ast.IndexExpr:
		kind = k.X
	case *ast.IndexListExpr:
		kind = k.X
	}
	return kind.(*ast.Ident).Name
}

// A rule about a package that is gone would hide the next one of that name.
func TestRulesNameWhatExists(t *testing.T) {
	var names []string
	for dir, above := range below {
		names = append(append(names, dir), above...)
	}
	for _, name := range append(names, append(pure, unruled...)...) {
		if found, err := os.ReadDir(name); err != nil || !slices.ContainsFunc(found, isGo) {
			t.Errorf("a rule names the package %s, which does not exist", name)
		}
	}
}

func isGo(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".go") }
