package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// field is a row of the reference of the job document.
type field struct {
	Path    string `json:"path"` // as request.docker.image
	Type    string `json:"type"`
	Default string `json:"default,omitempty"`
	Meaning string `json:"meaning"`
}

// objects are the sections whose tables are of other objects than their titles say.
var objects = map[string][]string{
	"Top level": {""}, "owner": {"owner."}, "Storage": {"request.docker.storage."}, "Ports": {"request.docker.portMappings."},
	"inputs and outputs": {"gbatch.inputs.", "gbatch.outputs."},
}

var (
	quotedName = regexp.MustCompile("`([^`]+)`")
	link       = regexp.MustCompile(`\[([^]]+)\]\([^)]*\)`)
)

// fieldsOf are the fields that the tables of the job document's reference have, so
// that the page says of them what the documents say.
func fieldsOf(text string) (out []field) {
	var inside, above []string // the objects that the section is about, and the one above it
	table := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		hashes, title, _ := strings.Cut(line, " ")
		switch cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|"); {
		case hashes == "##":
			if inside = objects[title]; inside == nil {
				inside = []string{title + "."}
			}
			above = inside
		case hashes == "###" && objects[title] != nil:
			inside = objects[title]
		case hashes == "###" && len(above) > 0:
			inside = []string{above[0] + title + "."}
		case strings.HasPrefix(line, "| field |"):
			table = true
		case !strings.HasPrefix(line, "|"):
			table = false
		case table && strings.HasPrefix(line, "| `") && len(cells) >= 3:
			out = append(out, rows(inside, cells)...)
		}
	}
	return out
}

// rows are the fields that a line of a table is about.
func rows(inside, cells []string) (out []field) {
	plain := func(s string) string {
		return link.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(s, "\x00", "|")), "$1")
	}
	f := field{Type: plain(cells[1]), Meaning: plain(cells[len(cells)-1])}
	if len(cells) > 3 {
		f.Default = plain(cells[2])
	}
	for _, object := range inside {
		for _, name := range quotedName.FindAllStringSubmatch(cells[0], -1) {
			f.Path = object + name[1]
			out = append(out, f)
		}
	}
	return out
}

// reference is what src/reference.tsx imports of the documents.
var reference = api.Plugin{Name: "reference", Setup: func(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: "^gbatch:fields$"}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: "fields", Namespace: "gbatch"}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: "^fields$", Namespace: "gbatch"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
		raw, err := os.ReadFile(filepath.Join(b.InitialOptions.AbsWorkingDir, "../../docs/job-format.md"))
		if err != nil {
			return api.OnLoadResult{}, err
		}
		fields := fieldsOf(string(raw))
		if len(fields) == 0 {
			return api.OnLoadResult{}, errors.New("docs/job-format.md has no tables of fields")
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		return api.OnLoadResult{Contents: new(string(text)), Loader: api.LoaderJSON}, nil
	})
}}
