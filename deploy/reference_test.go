package deploy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"gbatch/internal/settings/settingstest"
)

var write = flag.Bool("write", false, "write docs/configuration.md anew")

const reference = "../docs/configuration.md"

const head = "# Keys of the configuration files\n\n" +
	"Both files are YAML. An unknown key, one given twice and a value of another kind are errors, told all at once with their lines, and so are values out of their bounds:\n" +
	"`gctld check-config FILE`, `gnoded check-config FILE`. A key without a value is as good as left out. Lengths of time are written as `90s`, `5 minutes`, `1h30m` or\n" +
	"`2 weeks`, sizes as `512MiB` or `2GB`. `gctld init` and `gnoded join` write the commented files that these tables are made of (`go test ./deploy -write`); a test holds\n" +
	"them against the keys that the programs read. *For example* stands before values that are no defaults.\n"

// client has no commented file: nobody needs more than its first key.
const client = `
## client.yaml

In ` + "`/etc/gbatch`" + ` for all, and in ` + "`gbatch`" + ` of a user's configuration directory, which wins key by key.

| key | |
|---|---|
| ` + "`controller`" + ` | where the controller is, as ` + "`gadm join-string`" + ` prints it |
| ` + "`tokenFile`" + ` | the token of users who have none of their own |
| ` + "`auth`" + ` | ` + "`token`" + ` or ` + "`munge`" + ` |
| ` + "`mungeSocket`" + ` | of MUNGE's daemon; default: the usual one |
`

// TestReference: docs/configuration.md is what the commented files say of each key.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for _, file := range []struct{ name, text string }{{"gctld.yaml", Gctld}, {"gnoded.yaml", Gnoded}} {
		fmt.Fprintf(&b, "\n## %s\n\n| key | value | |\n|---|---|---|\n", file.name)
		var shown, all yaml.Node
		for text, to := range map[string]*yaml.Node{file.text: &shown, settingstest.Uncomment(file.text): &all} {
			if err := yaml.Unmarshal([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		defaults := map[string]bool{}
		rows(shown.Content[0], "", func(path, _, _ string) { defaults[path] = true })
		rows(all.Content[0], "", func(path, value, comment string) {
			if value != "" {
				value = "`" + value + "`"
			}
			if value != "" && !defaults[path] {
				value = "*for example* " + value
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path, value, strings.ReplaceAll(comment, "|", "\\|"))
		})
	}
	b.WriteString(client)
	if *write {
		if err := os.WriteFile(reference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("run `go test ./deploy -write` (-made of the files +there):\n%s", diff)
	}
}

// rows calls row for each key of a block, and for those in blocks below it once:
// those of all elements of a list together.
func rows(n *yaml.Node, in string, row func(path, value, comment string)) {
	if n.Kind == yaml.SequenceNode {
		seen := map[string]bool{}
		for _, kid := range n.Content {
			rows(kid, in+"[]", func(path, value, comment string) {
				if !seen[path] {
					seen[path] = true
					row(path, value, comment)
				}
			})
		}
		return
	}
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 {
		row(in, inline(n), clean(n.LineComment))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(in+"."+key.Value, ".")
		if value.Kind == yaml.ScalarNode || value.Style&yaml.FlowStyle != 0 {
			row(path, inline(value), clean(value.LineComment+key.LineComment))
			continue
		}
		if key.LineComment != "" {
			row(path, "", clean(key.LineComment))
		}
		rows(value, path, row)
	}
}

func clean(comment string) string { return strings.TrimSpace(strings.TrimPrefix(comment, "#")) }

// inline is a value on one line, as it is written in the file.
func inline(n *yaml.Node) string {
	bare := *n
	bare.LineComment, bare.HeadComment, bare.FootComment = "", "", ""
	out, err := yaml.Marshal(&bare)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}
