// Bundle builds the web page in internal/web/dist from its sources and from the
// packages that package-lock.json pins. Equal input gives equal bytes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: bundle internal/web")
	}
	if err := bundle(os.Args[1]); err != nil {
		log.Fatalf("bundle: %v", err)
	}
}

func bundle(dir string) error {
	dist := filepath.Join(dir, "dist")
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r := api.Build(api.BuildOptions{
		AbsWorkingDir: abs, EntryPoints: []string{"src/main.tsx"}, Outdir: "dist", EntryNames: "page-[hash]", ChunkNames: "part-[hash]", Splitting: true,
		Bundle: true, Write: true, Metafile: true, Format: api.FormatESModule, Target: api.ES2022,
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Tsconfig: "tsconfig.json", Plugins: []api.Plugin{adapted, reference},
	})
	if len(r.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(r.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	var meta struct {
		Inputs  map[string]struct{}
		Outputs map[string]output
	}
	if err := json.Unmarshal([]byte(r.Metafile), &meta); err != nil {
		return err
	}
	if err := licences(abs, slices.Collect(maps.Keys(meta.Inputs))); err != nil {
		return err
	}
	icon, err := os.ReadFile(filepath.Join(abs, "src", "icon.svg"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dist, "icon.svg"), icon, 0o644)
	}
	if err != nil {
		return err
	}
	return document(dist, first(meta.Outputs))
}

// output is a file that was made.
type output struct {
	EntryPoint string
	Imports    []struct{ Path, Kind string }
}

// first are the parts that the script needs before it can begin: a browser that is
// told of them need not find out one after the other.
func first(outputs map[string]output) (parts []string) {
	for _, o := range outputs {
		for _, in := range o.Imports {
			if o.EntryPoint == "src/main.tsx" && in.Kind == "import-statement" {
				parts = append(parts, path.Base(in.Path))
			}
		}
	}
	slices.Sort(parts)
	return parts
}

// document writes the page that loads what was built.
func document(dist string, parts []string) error {
	script, _ := filepath.Glob(filepath.Join(dist, "page-*.js")) // its only error is of the pattern
	style, _ := filepath.Glob(filepath.Join(dist, "page-*.css"))
	if len(script) != 1 || len(style) != 1 {
		return fmt.Errorf("%s has scripts %v and style sheets %v: one each is expected", dist, script, style)
	}
	var ahead strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&ahead, "<link rel=\"modulepreload\" href=\"/web/%s\">\n", p)
	}
	text := fmt.Sprintf(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>gbatch</title>
<link rel="icon" href="/web/icon.svg">
<link rel="stylesheet" href="/web/%s">
%s<script type="module" src="/web/%s"></script>
<div id="app"></div>
<noscript>This page needs JavaScript. The commands do not: see gqueue.</noscript>
</html>
`, filepath.Base(style[0]), ahead.String(), filepath.Base(script[0]))
	return os.WriteFile(filepath.Join(dist, "index.html"), []byte(text), 0o644)
}

// licences lists the packages that the page is made of, with their licences.
func licences(dir string, inputs []string) error {
	var names []string
	for _, in := range inputs {
		if rest, ok := strings.CutPrefix(in, "node_modules/"); ok {
			parts := strings.Split(rest, "/")
			n := 1
			if strings.HasPrefix(rest, "@") {
				n = 2
			}
			names = append(names, strings.Join(parts[:n], "/"))
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range slices.Compact(names) {
		found, _ := filepath.Glob(filepath.Join(dir, "node_modules", name, "LICEN[SC]E*"))
		if len(found) == 0 {
			return fmt.Errorf("package %s has no licence", name)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n\n%s\n", name, text)
	}
	return os.WriteFile(filepath.Join(dir, "dist", "licences.txt"), []byte(out.String()), 0o644)
}
