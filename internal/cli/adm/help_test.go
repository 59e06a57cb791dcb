package adm

import (
	"bytes"
	"strings"
	"testing"

	"gbatch/internal/cli"
)

// TestHelp: the list of topics, a topic in both forms, and what is none.
func TestHelp(t *testing.T) {
	for name, tc := range map[string]struct {
		topics Topics
		want   string // in the output, or else in the error
		failed bool
	}{
		"list":     {topics: Topics{}, want: "\nmetrics "},
		"text":     {topics: Topics{Topic: "gnoded.yaml"}, want: "`stateDir`\n"},
		"page":     {topics: Topics{Topic: "gnoded.yaml", Roff: true}, want: ".TH GNODED.YAML 5 "},
		"nearest":  {topics: Topics{Topic: "securty"}, want: `did you mean "security"?`, failed: true},
		"command":  {topics: Topics{Topic: "gsubmit"}, want: "gsubmit --help", failed: true},
		"no topic": {topics: Topics{Roff: true}, want: "--roff wants a topic", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := ""
			if err := tc.topics.Run(&cli.App{Out: &out}); (err != nil) != tc.failed {
				t.Fatal(err)
			} else if err != nil {
				got = err.Error()
			}
			if got += out.String(); !strings.Contains(got, tc.want) {
				t.Errorf("%q is not in %s", tc.want, got)
			}
		})
	}
}
