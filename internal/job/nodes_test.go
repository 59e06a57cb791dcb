package job

import (
	"strings"
	"testing"
)

func TestParseNodes(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "a,b": "a b", "n[1-3]": "n1 n2 n3", "n[08-10,12],m": "n08 n09 n10 n12 m", ",a,": "a",
		"n[": "error", "n[1-": "error", "n[3-1]": "error", "n[x]": "error", "n[1]x": "error", "n[1-99999999]": "error", "n[" + strings.Repeat("0", 1<<10) + "1-9999]": "error", strings.Repeat("n", 1<<10) + "[1-9999]": "error",
	} {
		names, err := ParseNodes(text)
		got := strings.Join(names, " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
