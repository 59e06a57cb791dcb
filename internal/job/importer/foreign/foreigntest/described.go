// Package foreigntest checks for the importers that docs/formats.md describes
// what they read.
package foreigntest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Described looks for every word, the name of a field or option, in code in the
// documentation of formats. It is called from the package of an importer.
func Described(t *testing.T, words ...string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		form := "`[^`\n]*\\b" + word + "\\b[^`\n]*`"
		if strings.HasPrefix(word, "-") {
			form = "`" + word + `\b`
		}
		if !regexp.MustCompile(form).Match(text) {
			t.Errorf("%q is not described", word)
		}
	}
}
