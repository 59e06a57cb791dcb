package manual

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const sample = "# Title\n\nWords with `code one`, **strong** ones and a [link](metrics.md#gpus),\none [here](#below) and <https://example.org>.\n\n" +
	"## Below\n\n1. first thing that is too long for one line\n2. second\n   - inner\n\n```sh\n.so x\\y  # a long line of code that nobody breaks\n```\n\n" +
	"| key | value |\n|---|---|\n| `a\\|b` | 1 |\n| `c` | |\n\n" +
	"| key | |\n|---|---|\n| `long` | a cell that does not fit into the width |\n| .dot | |\n"

// TestText: one document, as lines of 40 columns and with bold letters.
func TestText(t *testing.T) {
	o := &writer{page: page{topic: &Topic{Name: "sample", file: "docs/sample.md"}, source: []byte(sample)}, Style: Style{Width: 40}}
	want := "TITLE\n\nWords with `code one`, strong ones and a\nlink (gadm help metrics), one here and\nhttps://example.org.\n\n" +
		"BELOW\n\n1. first thing that is too long for one\n   line\n2. second\n   - inner\n\n    .so x\\y  # a long line of code that nobody breaks\n\n" +
		"key    value\n`a|b`  1\n`c`\n\n" +
		"`long`\n    a cell that does not fit into the\n    width\n.dot\n"
	if diff := cmp.Diff(want, string(o.whole())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o = &writer{page: page{topic: &Topic{}, source: []byte("`a b` *c*")}, Style: Style{Width: 40, Color: true}}
	if got, want := string(o.whole()), "\x1b[1ma\x1b[0m \x1b[1mb\x1b[0m c\n"; got != want {
		t.Errorf("with colours it is %q, not %q", got, want)
	}
}

// TestTopics writes all documents in all forms: lines keep to the width where
// they are no code, no mark of Markdown is left, and groff has no remark.
func TestTopics(t *testing.T) {
	left := regexp.MustCompile("(?m)\\]\\([^ )]*\\)|^\\s*\\|.*\\||^#+ |\\*\\*\\w")
	groff, _ := exec.LookPath("groff")
	for _, topic := range Topics() {
		t.Run(topic.Name, func(t *testing.T) {
			var b bytes.Buffer
			if err := topic.WriteText(&b, Style{Width: 80}); err != nil {
				t.Fatal(err)
			}
			if b.Len() < 200 || topic.About == "" {
				t.Errorf("about %q it says only %q", topic.About, b.String())
			}
			code := map[string]bool{}
			for _, l := range strings.Split(string(read(topic.file)), "\n") {
				code[strings.TrimSpace(l)] = true
			}
			for _, l := range strings.Split(b.String(), "\n") {
				if code[strings.TrimSpace(l)] {
					continue
				}
				if utf8.RuneCountInString(l) > 80 && strings.Contains(strings.TrimSpace(l), " ") && strings.Count(l, "`") != 2 {
					t.Errorf("a line of %d: %s", utf8.RuneCountInString(l), l)
				}
				if m := left.FindString(l); m != "" {
					t.Errorf("%q is left in: %s", m, l)
				}
			}
			b.Reset()
			if err := topic.WriteMan(&b, "1.2.3"); err != nil {
				t.Fatal(err)
			}
			if groff == "" {
				t.Skip("SKIPPED: groff is missing: the format of man pages is not tested")
			}
			cmd := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww")
			cmd.Stdin = &b
			var text, warnings bytes.Buffer
			cmd.Stdout, cmd.Stderr = &text, &warnings
			err := cmd.Run()
			said := regexp.MustCompile(`(?m)^.*(can't break|cannot adjust|adjust) line.*\n?`).ReplaceAllString(warnings.String(), "")
			if err != nil || said != "" || text.Len() < 200 {
				t.Errorf("groff: %v: %s", err, said)
			}
		})
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{"metrics": "metrics", "docs/metrics.md": "metrics", "gctld.yaml": "gctld.yaml", "gbatch-job": "job-format", "job-format": "job-format", "CHANGELOG": "changelog"} {
		if got, err := Find(name); err != nil || got.Name != want {
			t.Errorf("%s: %q, %v", name, got.Name, err)
		}
	}
	for name, want := range map[string]string{
		"metrix":  `there is no topic "metrix"; did you mean "metrics"? ` + "`gadm help` lists them",
		"fishing": "there is no topic \"fishing\"; `gadm help` lists them",
	} {
		if _, err := Find(name); err == nil || strings.ReplaceAll(err.Error(), "?; ", "? ") != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
