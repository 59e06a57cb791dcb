package importer_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/hostiletest"
)

// Most that reading one hostile file may allocate. A document has at most 1 MiB.
const mostAllocated = 512 << 20

// TestHostileFiles reads each file of the corpus as gsubmit does. What is
// refused says exactly this; what is taken means what the corpus says, reads
// back to itself as the controller would read it, and shows no password.
func TestHostileFiles(t *testing.T) {
	cases := hostiletest.Cases(t)
	if len(cases) < 200 {
		t.Errorf("the corpus has %d files", len(cases))
	}
	seen := map[string]bool{}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if seen[c.Name] {
				t.Error("the name is there twice")
			}
			seen[c.Name] = true
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			sub, err := c.Read()
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > mostAllocated {
				t.Errorf("it allocated %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
			}
			if got := shown(err); got != c.Want.Refused && got != "" && flag.Lookup("rewrite").Value.String() == "true" {
				rewriteRefusal(t, c, got)
			} else if got != c.Want.Refused {
				t.Errorf("%s (-want +got):\n%s", c.Attack, cmp.Diff(c.Want.Refused, got))
			}
			if err == nil {
				readsBack(t, sub)
				means(t, c, sub)
			}
		})
	}
}

// rewriteRefusal puts what is said into the corpus.
func rewriteRefusal(t *testing.T, c hostiletest.Case, said string) {
	t.Helper()
	file, name, _ := strings.Cut(c.Name, "/")
	path := filepath.Join("hostiletest", "corpus", file+".txt")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, section, _ := strings.Cut("\n"+string(text), "\n=== "+name+"\n")
	section, after, more := strings.Cut(section, "\n=== ")
	section = section[:strings.LastIndex(section, "\n--- ")] + "\n--- refused\n" + said
	if more {
		after = "\n=== " + after
	}
	if err := os.WriteFile(path, []byte(strings.TrimPrefix(before+"\n=== "+name+"\n"+section+after, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shown is an error as people read it, with what a line cannot hold as escapes.
func shown(err error) string {
	if err == nil {
		return ""
	}
	var b strings.Builder
	for _, r := range err.Error() {
		if r < ' ' && r != '\n' || r == 0x7f {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// means compares a job with what is said of it, and looks for the author's value.
func means(t *testing.T, c hostiletest.Case, sub job.Submission) {
	t.Helper()
	text, err := json.Marshal(sub.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range append([]job.Note{{Message: string(text)}}, sub.Notes...) {
		if strings.Contains(note.String(), hostiletest.Private) {
			t.Errorf("the author's value is shown: %s", note)
		}
	}
	for _, fact := range c.Want.Facts {
		path, want, _ := strings.Cut(fact, " ")
		if got := hostiletest.At(t, text, path); got != want {
			t.Errorf("%s: %s is %s, want %s", c.Attack, path, got, want)
		}
	}
}

// readsBack says that the controller reads the job that was sent.
func readsBack(t *testing.T, sub job.Submission) {
	t.Helper()
	doc, err := sub.Document()
	if err != nil {
		t.Fatal(err)
	}
	again, err := job.Parse(doc)
	if err != nil {
		t.Fatalf("the controller would not read it: %v", err)
	}
	if diff := cmp.Diff(sub.Spec, again.Spec); diff != "" {
		t.Errorf("the controller would read another job (-sent +read):\n%s", diff)
	}
}

// FuzzParse reads anything as a job file, and with it a command line of sbatch:
// what is taken is a native document that reads back to itself, and what is
// refused is a bounded list of problems.
func FuzzParse(f *testing.F) {
	for _, c := range hostiletest.Cases(f) {
		if len(c.Text) < 4096 { // long ones make each execution slow
			f.Add(c.Text, strings.Join(c.Line, "\n"))
		}
	}
	paths, _ := filepath.Glob("testdata/*.in")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "")
	}
	f.Fuzz(func(t *testing.T, data []byte, line string) {
		c := hostiletest.Case{Text: data}
		if line != "" {
			c.Line = strings.Split(line, "\n")
		}
		sub, err := c.Read()
		if err == nil {
			readsBack(t, sub)
			return
		}
		var ps job.Problems
		if !errors.As(err, &ps) || len(ps) == 0 || len(ps) > 2*document.MaxProblems {
			t.Fatalf("the error is a %T of %d problems: %v", err, len(ps), err)
		}
	})
}
