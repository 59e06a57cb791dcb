package gbatch

import (
	"bytes"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// poller names the helpers that look again and again until a deadline; only
// they may sleep in tests, and code in a synctest bubble, where it costs nothing.
var poller = regexp.MustCompile(`^(eventually|poll|wait|until)`)

func TestTestsDoNotSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() || strings.HasPrefix(s.name, "internal/lab/") { // all of that is in a bubble
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || poller.MatchString(strings.ToLower(f.Name.Name)) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok && isCall(call, "synctest", "Test") {
					return false
				}
				if ok && isCall(call, "time", "Sleep") {
					t.Errorf("%s:%d: a sleep in %s: wait for what is meant, with a deadline", s.name, s.line(call.Pos()), f.Name.Name)
				}
				return true
			})
		}
	}
}

func isCall(c *ast.CallExpr, pkg, name string) bool {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == name
}

// unfinished is written in two parts so that it does not find itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	text := []string{".go", ".md", ".sh", ".yaml", ".yml", ".service", ""}
	files(t, func(name string, body []byte) {
		if !slices.Contains(text, path.Ext(name)) || bytes.IndexByte(body, 0) >= 0 {
			return
		}
		for i, line := range strings.Split(string(body), "\n") {
			if m := unfinished.FindString(line); m != "" {
				t.Error(name + ":" + strconv.Itoa(i+1) + ": " + m + ": do it, or write down the decision not to")
			}
		}
	})
}
