package gbatch

import (
	"go/ast"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What pure packages may not import, call or depend on.
var (
	impure      = regexp.MustCompile(`^(os|net|net/http|sync|log|context|testing|unsafe)$|^(os|net/http|sync|log|runtime)/|^(math|crypto)/rand$`)
	impureTime  = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
	impureOther = regexp.MustCompile(`github\.com/(prometheus|cockroachdb/pebble|opencontainers/runc)/`)
)

func checkPureImports(t *testing.T, p goPackage) {
	for _, i := range p.Imports {
		if impure.MatchString(i) {
			t.Errorf("%s is pure and imports %s", p.ImportPath, i)
		}
	}
	for _, d := range p.Deps {
		if impureOther.MatchString(d) {
			t.Errorf("%s is pure and depends on %s", p.ImportPath, d)
		}
	}
}

func TestPureCode(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !slices.Contains(pure, path.Dir(filepath.ToSlash(s.name))) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := impureNode(n); what != "" {
				t.Errorf("%s:%d: %s in pure code", s.name, s.line(n.Pos()), what)
			}
			return true
		})
	}
}

func impureNode(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
		return "a channel"
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		if x != nil && x.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
		if x != nil && x.Name == "rand" && !strings.HasPrefix(n.Sel.Name, "New") && ast.IsExported(n.Sel.Name) && n.Sel.Name != "Rand" && n.Sel.Name != "Source" {
			return "rand." + n.Sel.Name
		}
	}
	return ""
}
