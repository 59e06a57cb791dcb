package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// changes let the terminal work under the page's policy, which refuses styles that
// stand in the document: its style sheets go into elements of ours (src/terminal.tsx),
// and a cell's colours are set as a script may.
var changes = []struct {
	old, is string
	times   int
}{
	{`.createElement("style")`, `.createElement("gbatch-sheet")`, 3},
	{"t.setAttribute(\"style\",`${t.getAttribute(\"style\")||\"\"}${e};`)", "t.style.cssText+=e", 1},
}

// adapted makes these changes, and fails where another version needs others.
var adapted = api.Plugin{Name: "terminal", Setup: func(b api.PluginBuild) {
	b.OnLoad(api.OnLoadOptions{Filter: `@xterm/xterm/lib/xterm\.mjs$`}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		raw, err := os.ReadFile(a.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		text := string(raw)
		for _, c := range changes {
			if n := strings.Count(text, c.old); n != c.times {
				return api.OnLoadResult{}, fmt.Errorf("%s has %q %d times, not %d: look at what this version of the terminal needs", a.Path, c.old, n, c.times)
			}
			text = strings.ReplaceAll(text, c.old, c.is)
		}
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	})
}}
