package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show writes a tree in one line, each value with its line number.
func show(n *Node) string {
	var parts []string
	switch n.Kind {
	case NullKind:
		return fmt.Sprintf("null@%d", n.Line)
	case ArrayKind:
		for _, kid := range n.Kids {
			parts = append(parts, show(kid))
		}
		return fmt.Sprintf("[%s]@%d", strings.Join(parts, " "), n.Line)
	case ObjectKind:
		for _, kid := range n.Kids {
			parts = append(parts, kid.Key+"="+show(kid))
		}
		return fmt.Sprintf("{%s}@%d", strings.Join(parts, " "), n.Line)
	case StringKind:
		return fmt.Sprintf("%q@%d", n.Text, n.Line)
	}
	return fmt.Sprintf("%s@%d", n.Text, n.Line)
}

func TestRead(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"json":          {"{\"a\": [1, -2.50, true, null],\n \"b\\ud83d\\ude00\": {\"c\":\n \"d\\n\"}, \"a\": 1}", "{a=[1@1 -2.50@1 true@1 null@1]@1 b😀={c=\"d\\n\"@2}@2 a=1@3}@1"},
		"json-bom":      {"\ufeff\n\n{}", "{}@3"},
		"yaml":          {"a: 1\r\nb:\r\n  - x # c\r\n  - {c: d}\r\n  -\r\n", "{a=1@1 b=[\"x\"@3 {c=\"d\"@4}@4 null@5]@2}@1"},
		"yaml-blocks":   {"a: |\n  x\n  y\nb: >-\n  x\n  y\nc: 'it''s'\nd: \"\\t\"\n", `{a="x\ny\n"@1 b="x y"@4 c="it's"@7 d="\t"@8}@1`},
		"yaml-numbers":  {"[3.10, 1_000, 0x10, 0o17, 017, 1e3, .5, 2024-01-02, \"5\", 24GB.., 80:8080]", `[3.10@1 1000@1 16@1 15@1 15@1 1e3@1 .5@1 "2024-01-02"@1 "5"@1 "24GB.."@1 "80:8080"@1]@1`},
		"yaml-truth":    {"[true, False, yes, off, ~]", `[true@1 false@1 "yes"@1 "off"@1 null@1]@1`},
		"yaml-alias":    {"a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\nf:\n  <<: [*x, {b: 3, g: 4}]\n  b: 5\n", "{a={b=1@1}@1 c={b=1@1}@2 d={e=2@5 b=1@1}@3 f={b=5@8 g=4@7}@6}@1"},
		"yaml-frame":    {"---\n---\na: 1\n---\n", "{a=1@3}@3"},
		"yaml-tag":      {"a: !!str 12\n", `{a="12"@1}@1`},
		"yaml-twice":    {"a: 1\na: 2\n", "{a=1@1 a=2@2}@1"},
		"no-json":       {"{\"a\": 1,\n \"b\" 2}", "document (line 2): is not JSON: "},
		"json-more":     {"{}\n{}", "document (line 2): is not JSON: something follows the document"},
		"json-half":     {"{\"a\": [\n", "document (line 2): is not JSON: "},
		"json-deep":     {"{\"a\": " + strings.Repeat("[", 100), "document (line 1): is not JSON: it has more than 64 levels"},
		"no-yaml":       {"a: 1\nb: [\n", "document (line 2): is not YAML: "},
		"yaml-tab":      {"a:\n\t- b\n", "document (line 2): is not YAML: "},
		"yaml-several":  {"a: 1\n---\nb: 1\n", "document (line 3): has several YAML documents; submit one job with each file"},
		"yaml-self":     {"a: &x [*x]\n", "document (line 1): "},
		"yaml-laughs":   {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "document (line 1): has more than 200000 values, with its aliases"},
		"yaml-deep":     {strings.Repeat("- ", 1000) + "a", "document (line 1): has more than 64 levels"},
		"yaml-deeper":   {strings.Repeat("[", 500_000), "document: is not YAML: exceeded max depth of 10000"},
		"yaml-odd-tag":  {"a: !python/object {}\nb: !x y\n", `document (line 2): has the tag "!x", which means nothing here; remove it`},
		"yaml-odd-key":  {"? [a]\n: b\n", "document (line 1): has a key that is no word"},
		"empty":         {" \n", "document: is empty"},
		"empty-yaml":    {"---\n# nothing\n", "document: is empty"},
		"another-coder": {"a: \xff", "document: is not text in UTF-8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := Read([]byte(tc.text))
			if err != nil {
				if !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("error %q, want %q", err, tc.want)
				}
				return
			}
			if diff := cmp.Diff(tc.want, show(n)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPath(t *testing.T) {
	n, err := Read([]byte("a:\n  b-c:\n  - x y: {'': 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for len(n.Kids) > 0 {
		n = n.Kids[0]
	}
	if got, want := n.path("-"), `a.b-c[0]["x y"][""]`; got != want {
		t.Errorf("path = %s, want %s", got, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"{\"a\": [1, \"\\ud83d\"]}", "a: &x [1]\nb: *x\n<<: {c: d}", "- - ? a\n", "a: |\n  b", "!!int x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := Read(data); err == nil {
			show(n)
		}
	})
}
