package human

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"any width":     {"one two three", 0, []string{"one two three"}},
		"fits":          {"one two", 7, []string{"one two"}},
		"at blanks":     {"one two three", 9, []string{"one two", "three"}},
		"lines indent":  {"head\n  one two three\ntail", 10, []string{"head", "  one two", "  three", "tail"}},
		"an address":    {"go to https://gbatch.example/login now", 12, []string{"go to", "https://gbatch.example/login", "now"}},
		"address first": {"https://gbatch.example/login now", 12, []string{"https://gbatch.example/login", "now"}},
		"wide":          {"名前 名前 x", 9, []string{"名前 名前", "x"}},
		"deep":          {"      one two", 4, []string{"      one", "      two"}},
	} {
		if diff := cmp.Diff(strings.Join(tc.want, "\n"), Fold(tc.text, tc.width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
