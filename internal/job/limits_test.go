package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/document"
	"gbatch/internal/job/words"
)

// whole puts text in the place of "docker"'s other fields.
func whole(docker string) string {
	return `{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"debian"` + docker + `}}}`
}

func repeat(n int, one func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = one(i)
	}
	return strings.Join(all, ",")
}

// TestLimits puts each bounded thing at its bound and one beyond it.
func TestLimits(t *testing.T) {
	variable := func(i int) string { return fmt.Sprintf(`"V%d":1`, i) }
	mount := func(i int) string { return fmt.Sprintf(`"/project/%d"`, i) }
	word := func(int) string { return `"word"` }
	letters := func(n int) string { return strings.Repeat("x", n) }
	tests := map[string]struct {
		at   func(n int) string // a document with n of the thing
		most int
		want string // the problem at most+1
	}{
		"variables": {func(n int) string { return whole(`,"environment":{` + repeat(n, variable) + `}`) }, maxVariables,
			"request.docker.environment (line 1): has 2001 variables, at most 2000 are allowed"},
		"storage": {func(n int) string { return whole(`,"storage":[` + repeat(n, mount) + `]`) }, maxStorage,
			"request.docker.storage (line 1): has 1001 entries, at most 1000 are allowed"},
		"arguments": {func(n int) string { return whole(`,"command":[` + repeat(n, word) + `]`) }, maxArgs,
			"request.docker.command (line 1): has 10001 entries, at most 10000 are allowed"},
		"groups": {func(n int) string { return whole(`,"groupAdd":[` + repeat(n, word) + `]`) }, maxListEntries,
			"request.docker.groupAdd (line 1): has 101 entries, at most 100 are allowed"},
		"cron": {func(n int) string {
			lines := repeat(n, func(int) string { return `"0 0 1 1 *"` })
			return strings.TrimSuffix(whole(""), "}") + `,"gbatch":{"cron":[` + lines + `]}}`
		}, maxCronLines, "gbatch.cron (line 1): has 21 entries, at most 20 are allowed"},
		"argument": {func(n int) string { return whole(`,"command":["a","` + letters(n) + `"]`) }, maxArgBytes,
			"request.docker.command[1] (line 1): has 131072 bytes, an argument may have at most 131071"},
		"command-line": {func(n int) string { return whole(`,"command":"` + letters(n) + `"`) }, maxArgBytes,
			"request.docker.command (line 1): has 131072 bytes, a command line may have at most 131071; put it into a script in project storage"},
		"value": {func(n int) string { return whole(`,"environment":{"V":"` + letters(n-2) + `"}`) }, maxArgBytes,
			"request.docker.environment.V (line 1): has 131072 bytes with its name, at most 131071 are allowed; put long data into a file in project storage"},
		"path": {func(n int) string { return whole(`,"workingDir":"/` + letters(n-1) + `"`) }, maxPathBytes,
			"request.docker.workingDir (line 1): has 4096 bytes, at most 4095 are allowed"},
		"bytes": {func(n int) string { doc := whole(""); return doc + strings.Repeat(" ", n-len(doc)) }, document.MaxBytes,
			"document: has 1048577 bytes, a job file may have at most 1048576; put data into project storage and mount it with request.docker.storage"},
		"depth": {func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }, 32,
			"document (line 1): is not JSON: line 1, column 33: is nested more than 32 levels deep"},
		"values": {func(n int) string { return "[" + repeat(n-1, func(int) string { return "0" }) + "]" }, 200_000,
			"document (line 1): is not JSON: line 1, column 400000: has more than 200000 values"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.at(tc.most))); err != nil && !strings.Contains(err.Error(), "must be an object") {
				t.Errorf("refused at the bound: %v", err)
			}
			_, err := Parse([]byte(tc.at(tc.most + 1)))
			if err == nil {
				t.Fatal("accepted beyond the bound")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("beyond the bound (-want +got):\n%s", diff)
			}
		})
	}
}

// A hundred thousand entries and a ten megabyte file get one sentence each.
func TestHugeInput(t *testing.T) {
	long := whole(`,"command":[` + repeat(100_000, func(int) string { return `"w"` }) + `]`)
	for _, doc := range []string{long, strings.Repeat(whole(""), 80_000)} {
		_, err := Parse([]byte(doc))
		if err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "\n") {
			t.Errorf("document of %d bytes: %v", len(doc), err)
		}
	}
}

// A line that nests without end is refused while it is short enough to check,
// and neither it nor a longer one costs much.
func TestDeepShellLine(t *testing.T) {
	line := func(n int) []byte { return []byte(whole(`,"command":"a;` + strings.Repeat("(", n) + `"`)) }
	if _, err := Parse(line(words.MaxChecked - 2)); err == nil || !strings.Contains(err.Error(), "is no shell command") {
		t.Errorf("line that is checked: %v", err)
	}
	if _, err := Parse(line(words.MaxChecked - 1)); err != nil {
		t.Errorf("line that is too long to check: %v", err)
	}
}

func TestManyProblems(t *testing.T) {
	_, err := Parse([]byte(`{` + repeat(1000, func(i int) string { return fmt.Sprintf(`"zzzzz%d":1`, i) }) + `}`))
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != document.MaxProblems {
		t.Fatalf("got %d problems", len(ps))
	}
	if want := (Problem{Message: "and 903 more problems"}); ps[document.MaxProblems-1] != want {
		t.Errorf("last problem is %v", ps[document.MaxProblems-1])
	}
}

func TestNotUTF8(t *testing.T) {
	_, err := Parse([]byte("{\n  \"name\": \"caf\xe9\"\n}"))
	want := "document (line 2): is not JSON: line 2, column 15: expected text in UTF-8, found another encoding"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Parse([]byte("\ufeff" + strings.ReplaceAll(whole(""), ",", ",\r\n"))); err != nil {
		t.Errorf("byte order mark and CRLF: %v", err)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"helloworld", "command-shell-syntax", "scheduling"} {
		data := read(b, "testdata/good/"+name+".json")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
