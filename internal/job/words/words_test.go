package words

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplit: quotes and backslashes are taken away, and nothing else is acted on.
func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                          nil,
		"a  'b c'\t\"d \\\"e\\\"\"": {"a", "b c", `d "e"`},
		"A=1 b | c":                 {"A=1", "b", "|", "c"},
		"a \\\n b\nc":               {"a", "b", "c"},
	} {
		got, err := Split(line)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", line, err, diff)
		}
	}
	if _, err := Split("a 'b"); err == nil {
		t.Error("an open quote is taken")
	}
}

// TestCommand: what only a shell can do makes a line one for a shell.
func TestCommand(t *testing.T) {
	for line, want := range map[string]bool{"a b=1": false, "A=1 b": true, "1A=1 b": false, "a; b": true, "a '; b'": false, "a\nb": true} {
		if _, got, err := Command(line); got != want || err != nil {
			t.Errorf("%q: for a shell: %t, want %t; %v", line, got, want, err)
		}
	}
}
