package ctld

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bodies are the types of the wire as their source has them, with comments.
type bodies struct {
	types map[string]*ast.TypeSpec // api's win over job's of the same name
	docs  map[string]string
	used  []string // to describe, in the order in which they were met
}

// elsewhere are described by other documents.
var elsewhere = map[string]string{"Spec": "the [job document](job-format.md)"}

func parseDir(t *testing.T, dir string) []*ast.File {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("read %s: %v", dir, err)
	}
	var out []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func readBodies(t *testing.T, dirs ...string) *bodies {
	b := &bodies{types: map[string]*ast.TypeSpec{}, docs: map[string]string{}}
	for _, dir := range dirs {
		for _, f := range parseDir(t, dir) {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != gotoken.TYPE {
					continue
				}
				for _, s := range g.Specs {
					s := s.(*ast.TypeSpec)
					if old := b.types[s.Name.Name]; old == nil || old.Assign.IsValid() {
						b.types[s.Name.Name] = s
						b.docs[s.Name.Name] = sentence(s.Doc, g.Doc)
					}
				}
			}
		}
	}
	return b
}

// constants are the values of the string constants whose names begin with
// prefix, with their comments.
func constants(t *testing.T, dir, prefix string) map[string]string {
	out := map[string]string{}
	for _, f := range parseDir(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, prefix) {
				return true
			}
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == gotoken.STRING {
				value, _ := strconv.Unquote(lit.Value)
				out[value] = sentence(v.Comment, v.Doc)
			}
			return true
		})
	}
	return out
}

// sentence is the first comment that there is, on one line, for a table.
func sentence(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
		}
	}
	return ""
}

// link names the type that a schema refers to, and has it described.
func (b *bodies) link(ref string, ofNodes bool) string {
	name := strings.TrimPrefix(ref, "#/components/schemas/")
	if ofNodes { // between daemons of one version: no contract for others
		return name
	}
	return b.name(name)
}

func (b *bodies) name(name string) string {
	if doc := elsewhere[name]; doc != "" {
		return doc
	}
	s := b.types[name]
	if s == nil {
		return name
	}
	if _, ok := s.Type.(*ast.StructType); !ok {
		return b.kind(s.Type)
	}
	if !slices.Contains(b.used, name) {
		b.used = append(b.used, name)
	}
	return "[" + name + "](#" + strings.ToLower(name) + ")"
}

// kind is a Go type in the words of JSON.
func (b *bodies) kind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return b.kind(e.X)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "bytes as base64"
		}
		return "array of " + b.kind(e.Elt)
	case *ast.MapType:
		return "object of " + b.kind(e.Value)
	case *ast.SelectorExpr:
		switch x := e.X.(*ast.Ident).Name + "." + e.Sel.Name; x {
		case "time.Time":
			return "time"
		case "json.RawMessage":
			return "JSON"
		}
		return b.name(e.Sel.Name)
	case *ast.Ident:
		switch e.Name {
		case "string":
			return "string"
		case "bool":
			return "truth value"
		case "float64":
			return "number"
		case "int", "int32", "int64", "uint", "uint32", "uint64", "uint16":
			return "integer"
		}
		return b.name(e.Name)
	}
	return fmt.Sprintf("%T", e)
}

// write describes the types that were met, and those that these lead to.
func (b *bodies) write(out *bytes.Buffer) {
	sections := map[string]string{}
	for i := 0; i < len(b.used); i++ { // grows while it is read
		sections[b.used[i]] = b.section(b.used[i])
	}
	fmt.Fprint(out, "\n## Bodies\n\nFields that are marked with ? may be left out or are absent where they say nothing.\n")
	slices.Sort(b.used)
	for _, name := range b.used {
		fmt.Fprint(out, sections[name])
	}
}

func (b *bodies) section(name string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n### %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", name, b.docs[name])
	for _, f := range b.types[name].Type.(*ast.StructType).Fields.List {
		kind := b.kind(f.Type)
		if len(f.Names) == 0 {
			fmt.Fprintf(&out, "| all of %s | | |\n", kind)
			continue
		}
		if f.Tag == nil {
			continue
		}
		raw, _ := strconv.Unquote(f.Tag.Value)
		tag := reflect.StructTag(raw)
		json, options, _ := strings.Cut(tag.Get("json"), ",")
		if json == "-" || json == "" {
			continue
		}
		optional := ""
		if strings.Contains(options, "omit") {
			optional = " ?"
		}
		meaning := tag.Get("doc")
		if meaning == "" {
			meaning = sentence(f.Comment, f.Doc)
		}
		fmt.Fprintf(&out, "| `%s`%s | %s | %s |\n", json, optional, kind, meaning)
	}
	return out.String()
}
