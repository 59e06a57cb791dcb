package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandArgs(t *testing.T) {
	sh := func(line string) []string { return []string{"/bin/sh", "-c", line} }
	tests := map[string]struct {
		command Command
		want    []string
		shell   bool
		err     string
	}{
		"none":                {command: Command{}},
		"blanks":              {command: Command{Line: " \n\t "}},
		"words":               {command: Command{Line: "  a  b\tc \n"}, want: []string{"a", "b", "c"}},
		"single-quotes":       {command: Command{Line: `a 'b c' ''`}, want: []string{"a", "b c", ""}},
		"single-are-literal":  {command: Command{Line: `a 'b\n"$x"'`}, want: []string{"a", `b\n"$x"`}},
		"double-quotes":       {command: Command{Line: `a "b c" ""`}, want: []string{"a", "b c", ""}},
		"double-escapes":      {command: Command{Line: `a "\\ \" \$ \` + "`" + ` \n"`}, want: []string{"a", `\ " $ ` + "`" + ` \n`}},
		"double-keep-dollar":  {command: Command{Line: `bash -c "for i in 1 2; do echo $i; done"`}, want: []string{"bash", "-c", "for i in 1 2; do echo $i; done"}},
		"joined-quotes":       {command: Command{Line: `a'b'"c"d`}, want: []string{"abcd"}},
		"backslash":           {command: Command{Line: `a\ b \> \$x \'`}, want: []string{"a b", ">", "$x", "'"}},
		"continued-line":      {command: Command{Line: "a \\\n b\\\nc"}, want: []string{"a", "bc"}},
		"quoted-line-break":   {command: Command{Line: "python -c 'a\nb'"}, want: []string{"python", "-c", "a\nb"}},
		"globs-are-words":     {command: Command{Line: `ls *.py a? [x] ~ {a,b} !x #c (y)`}, want: []string{"ls", "*.py", "a?", "[x]", "~", "{a,b}", "!x", "#c", "(y)"}},
		"equals-in-argument":  {command: Command{Line: `a --x=1 y=2`}, want: []string{"a", "--x=1", "y=2"}},
		"equals-in-program":   {command: Command{Line: `./a=b c`}, want: []string{"./a=b", "c"}},
		"redirect":            {command: Command{Line: `a > b`}, want: sh(`a > b`), shell: true},
		"input":               {command: Command{Line: `a<b`}, want: sh(`a<b`), shell: true},
		"pipe":                {command: Command{Line: `a | b`}, want: sh(`a | b`), shell: true},
		"semicolon":           {command: Command{Line: `a; b`}, want: sh(`a; b`), shell: true},
		"and":                 {command: Command{Line: `a && b`}, want: sh(`a && b`), shell: true},
		"background":          {command: Command{Line: `a &`}, want: sh(`a &`), shell: true},
		"variable":            {command: Command{Line: `a $B`}, want: sh(`a $B`), shell: true},
		"backquote":           {command: Command{Line: "a `b`"}, want: sh("a `b`"), shell: true},
		"two-lines":           {command: Command{Line: "a\nb"}, want: sh("a\nb"), shell: true},
		"assignment":          {command: Command{Line: "A=1 b"}, want: sh("A=1 b"), shell: true},
		"bash-only-syntax":    {command: Command{Line: "a <(b)"}, want: sh("a <(b)"), shell: true},
		"array":               {command: Command{Argv: []string{"a b", "$c", ""}}, want: []string{"a b", "$c", ""}},
		"open-single-quote":   {command: Command{Line: `a 'b`}, err: "has a quote ' without its closing one"},
		"open-double-quote":   {command: Command{Line: `a "b\"`}, err: `has a quote " without its closing one`},
		"backslash-at-end":    {command: Command{Line: `a \`}, err: "ends in a backslash with nothing after it"},
		"empty-program":       {command: Command{Line: `"" a`}, err: "has an empty word where the program should be"},
		"shell-syntax-error":  {command: Command{Line: `a | | b`}, err: "is no shell command: at character 3: `|` must be followed by a statement"},
		"open-quote-in-shell": {command: Command{Line: `a; "b`}, err: `has a quote " without its closing one`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, shell, err := tc.command.Args()
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Fatalf("error %q, want %q", text, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || shell != tc.shell {
				t.Errorf("shell %v, want %v; args (-want +got):\n%s", shell, tc.shell, diff)
			}
		})
	}
}

func TestCommandJSON(t *testing.T) {
	for text, want := range map[string]Command{
		`""`:          {},
		`"a b"`:       {Line: "a b"},
		`["a b","c"]`: {Argv: []string{"a b", "c"}},
	} {
		var c Command
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if back, err := json.Marshal(c); err != nil || string(back) != text {
			t.Errorf("%s is written as %s (%v)", text, back, err)
		}
	}
	var c Command
	for _, text := range []string{`1`, `[1]`, `{}`} {
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s is read as %v", text, c)
		}
	}
}

// FuzzSplitLine compares the word split with its inverse: words that are quoted
// come back as they were, and no line panics.
func FuzzSplitLine(f *testing.F) {
	f.Add("a 'b c'", "x")
	f.Add("a > b", "$y 'z'")
	f.Fuzz(func(t *testing.T, line, word string) {
		_, _, _ = Command{Line: line}.Args()
		quoted := "prog '" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		got, shell, err := Command{Line: quoted}.Args()
		if err != nil || shell {
			t.Fatalf("%q: shell %v, error %v", quoted, shell, err)
		}
		if diff := cmp.Diff([]string{"prog", word}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", quoted, diff)
		}
	})
}
