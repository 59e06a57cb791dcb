package gbatch

import (
	"bytes"
	"go/ast"
	"slices"
	"testing"
)

// What fits a screen, and a head.
const (
	maxFile, wantFile = 500, 400
	maxFunc           = 70
	maxTestFunc       = 125
	maxParams         = 4 // a context and a *testing.T do not count
)

// prescribed are methods whose parameters a library's interface has.
var prescribed = []string{"internal/replica/copies.go Create"} // of raft.SnapshotStore

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		switch n := bytes.Count(s.text, []byte("\n")); {
		case n > maxFile:
			t.Errorf("%s has %d lines, more than %d", s.name, n, maxFile)
		case n > wantFile:
			t.Logf("%s has %d lines; think of splitting it", s.name, n)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				checkFunc(t, s, f)
			}
		}
	}
}

func checkFunc(t *testing.T, s source, f *ast.FuncDecl) {
	limit := maxFunc
	if s.test() {
		limit = maxTestFunc
	}
	if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > limit {
		t.Errorf("%s:%d: %s has %d lines, more than %d", s.name, s.line(f.Pos()), f.Name.Name, n, limit)
	}
	if n := countParams(f.Type.Params); n > maxParams && !slices.Contains(prescribed, s.name+" "+f.Name.Name) {
		t.Errorf("%s:%d: %s has %d parameters; use a struct of options", s.name, s.line(f.Pos()), f.Name.Name, n)
	}
}

func countParams(l *ast.FieldList) int {
	n := l.NumFields()
	if n == 0 {
		return 0
	}
	kind := l.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if sel, ok := kind.(*ast.SelectorExpr); ok && slices.Contains([]string{"Context", "T", "B", "TB", "F"}, sel.Sel.Name) {
		n--
	}
	return n
}
