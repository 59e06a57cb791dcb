package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
)

// TestPage looks at what the page's own functions find: src/check.ts calls them.
func TestPage(t *testing.T) {
	node, err := exec.LookPath("node")
	if _, missing := os.Stat("node_modules/preact"); err != nil || missing != nil {
		t.Skip("SKIPPED: the web page's functions are not tested: node, or what scripts/build-web fetches, is missing")
	}
	dir := t.TempDir()
	built := filepath.Join(dir, "check.mjs")
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{"src/check.ts"}, Outfile: built, Bundle: true, Write: true, Format: api.FormatESModule, Target: api.ES2022,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Footer: map[string]string{"js": "console.log(JSON.stringify(found))"},
	})
	if len(r.Errors) > 0 {
		t.Fatal(api.FormatMessages(r.Errors, api.FormatMessagesOptions{}))
	}
	out, err := exec.CommandContext(t.Context(), node, built).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]any{
		"colours":                   "[fg2 bold:ok] done [fg1:red]",
		"palette that is not ours":  "text more",
		"other sequences":           "ab",
		"a title that does not end": "a",
		"progress":                  "30 %",
		"markup":                    "<img src=x onerror=alert(1)>",
		"lines in any cut":          list("1 a", "2 bc", "3 d"),
		"mine":                      "fold=true&newest=true&user=ann",
		"everyone":                  "fold=true&newest=true&all=true&text=a",
		"what is read first":        list(0.0, 50.0),
		"in sight":                  list(100.0, 50.0),
		"far down":                  list(150.0, 50.0),
		"all there":                 "nothing",
		"read again":                list(list(0.0, 50.0), "249"),
		"put":                       list(true, "RUNNING", false, 7.0),
		"empty now":                 list("nothing", "nothing", 0.0),
		"tasks between":             list("0", "1", "1:50", "1:51", "2", "2:60", "3"),
		"durations":                 list("0 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h", "400 d"),
		"sizes":                     list("0 B", "1023 B", "1 KiB", "1.5 KiB", "5 GiB", "123 TiB"),
		"drawn":                     list("1", "2", "3"),
		"drawn too slowly":          list("1", "\x18\r\n[4194304 bytes are not shown: they came faster than they could be drawn]", "10", "20"),
		"the field at a place":      list("", "na|", "req|", "a.b.c", "", "c", ""),
		"again":                     list("Monday to Friday 18:00 Europe/Brussels", "each Wednesday 08:05 Europe/Brussels", "0 0 1 * * Europe/Brussels"),
		"comes again":               list("30 18 * * 3", map[string]any{"schedule": "30 18 7 * *", "zone": "UTC"}),
		"a message":                 list(4.0, 1.0, 2.0),
		"curves":                    list(list(1000.0, 1010.0, 1020.0, 1200.0), list(1.0, nil, nil, 3.0)),
		"curve in words":            list("mean 2, most 3", "not known"),
		"plan":                      list("0 of 2: 0 + 25", "1 of 2: 0 + 100", "0 of 2: 25 + 75"),
		"spans":                     list("QUEUED 9999", "STARTING 2000", "RUNNING 48000"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the page's functions find (-want +got):\n%s", diff)
	}
}

func list(of ...any) []any { return of }

// TestSize bounds what a browser fetches for all pages together, so that a package
// that is added is weighed.
func TestSize(t *testing.T) {
	built, err := filepath.Glob("dist/*.*s") // scripts and styles
	if err != nil {
		t.Fatal(err)
	}
	built = append(built, "dist/index.html", "dist/icon.svg")
	if len(built) == 2 {
		t.Skip("SKIPPED: the web page is not weighed: it was not built; run: scripts/build-web")
	}
	total := 0
	for _, name := range built {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(packed(name, text).small)
	}
	if total > 250_000 {
		t.Errorf("all pages are %d bytes compressed, more than 250,000", total)
	}
	t.Logf("%d files, %d bytes compressed", len(built), total)
}
