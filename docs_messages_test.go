package gbatch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	inBold      = regexp.MustCompile(`(?s)\*\*(.+?)\*\*`)
	inCode      = regexp.MustCompile("(?s)`(.+?)`")
	formatVerb  = regexp.MustCompile(`%[-+#]?[0-9.*]*[a-zA-Z]`)
	notConstant = regexp.MustCompile(`…|"[^"]*"|'[^']*'|[0-9]+|\b[A-Z][A-Z0-9_]*\b|[;:,()\[\]]|%`)
)

// TestTroubleshootingQuotesMessages looks for each message of
// docs/troubleshooting.md in the strings of the programs. What differs from time
// to time, names and numbers and what stands between quotes, is left out.
func TestTroubleshootingQuotesMessages(t *testing.T) {
	body, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var quoted []string
	for _, bold := range inBold.FindAllStringSubmatch(string(body), -1) {
		for _, code := range inCode.FindAllStringSubmatch(bold[1], -1) {
			quoted = append(quoted, code[1])
		}
	}
	for line := range strings.Lines(string(body)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`") && !strings.Contains(cells[2], "`") {
			quoted = append(quoted, cells[2]) // of the table of jobs that failed
		}
	}
	if len(quoted) < 50 {
		t.Fatalf("%d messages found", len(quoted))
	}
	strs := programStrings(t)
	for _, q := range quoted {
		for _, part := range notConstant.Split(strings.Join(strings.Fields(q), " "), -1) {
			if part = strings.TrimSpace(part); len(part) > 3 && !strings.Contains(strs, part) {
				t.Errorf("docs/troubleshooting.md: no program says %q, of %q", part, q)
			}
		}
	}
}

var namesDocument = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md`)

// TestMessagesNameDocumentsThatExist looks for each document that a program sends
// its reader to.
func TestMessagesNameDocumentsThatExist(t *testing.T) {
	named := namesDocument.FindAllString(programStrings(t), -1)
	if len(named) < 5 {
		t.Fatalf("%d documents named", len(named))
	}
	for _, name := range named {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a program names %s: %v", name, err)
		}
	}
}

// programStrings is every string in our programs, one a line.
func programStrings(t *testing.T) string {
	var out strings.Builder
	files(t, func(name string, body []byte) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, body, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, _ := strconv.Unquote(lit.Value)
				out.WriteString(formatVerb.ReplaceAllString(s, "…") + "\n")
			}
			return true
		})
	})
	return out.String()
}
