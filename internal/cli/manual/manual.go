// Package manual has the documents as topics, and writes them as text for a
// terminal and as man pages. The documents are in the program: what is shown is
// of its version.
package manual

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"gbatch"
	"gbatch/internal/document"
)

// Topic is a document, or the part of one that is below a heading.
type Topic struct {
	Name  string
	About string // its title

	file    string
	heading string // of a part; empty: all of the file
	page    string // name of its man page
	see     []string
}

// parts are topics with man pages: files that people write.
var parts = []Topic{
	{Name: "gctld.yaml", About: "configuration file of the controller", file: "docs/configuration.md", heading: "gctld.yaml", page: "gctld.yaml", see: []string{"gctld(8)", "gadm(1)"}},
	{Name: "gnoded.yaml", About: "configuration file of a node", file: "docs/configuration.md", heading: "gnoded.yaml", page: "gnoded.yaml", see: []string{"gnoded(8)", "gctld.yaml(5)"}},
	{Name: "client.yaml", About: "configuration file of the commands", file: "docs/configuration.md", heading: "client.yaml", page: "client.yaml", see: []string{"gsubmit(1)", "gadm(1)"}},
	{Name: "job-format", About: "the job document", file: "docs/job-format.md", page: "gbatch-job", see: []string{"gsubmit(1)", "gqueue(1)"}},
}

// Topics are all, by name.
func Topics() []Topic {
	out := slices.Clone(parts)
	files := []string{"CHANGELOG.md"}
	list, err := gbatch.Documents.ReadDir("docs")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, f := range list {
		files = append(files, path.Join("docs", f.Name()))
	}
	for _, file := range files {
		t := Topic{Name: topicName(file), file: file}
		if slices.ContainsFunc(out, func(o Topic) bool { return o.Name == t.Name }) {
			continue
		}
		title, _, _ := strings.Cut(string(read(file)), "\n")
		t.About = strings.TrimPrefix(title, "# ")
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// topicName is how a file's topic is called: docs/metrics.md is metrics.
func topicName(file string) string {
	return strings.ToLower(strings.TrimSuffix(path.Base(file), ".md"))
}

// Find gives a topic by its name, as people write it.
func Find(name string) (Topic, error) {
	want := topicName(name)
	var names []string
	for _, t := range Topics() {
		if t.Name == want || t.page == want {
			return t, nil
		}
		names = append(names, t.Name)
	}
	hint := ""
	if near := document.Nearest(want, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return Topic{}, fmt.Errorf("there is no topic %q%s; `gadm help` lists them", name, hint)
}

func read(file string) []byte {
	b, err := gbatch.Documents.ReadFile(file)
	if err != nil {
		panic(err) // it is in the program
	}
	return b
}

// page is a document while it is written.
type page struct {
	topic  *Topic
	source []byte
}

func newPage(t *Topic) page { return page{topic: t, source: read(t.file)} }

// blocks are what the topic consists of. What a document says before its first
// part is said in each part.
func (p *page) blocks() []ast.Node {
	doc := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(p.source))
	var out []ast.Node
	in, found := true, false
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if ok && h.Level == 1 && p.topic.heading != "" {
			continue // the part's name stands there
		}
		if ok && h.Level == 2 && p.topic.heading != "" {
			in = plain(p.spans(h)) == p.topic.heading
			found = found || in
			if in {
				continue
			}
		}
		if in {
			out = append(out, n)
		}
	}
	if p.topic.heading != "" && !found {
		panic("no heading " + p.topic.heading + " in " + p.topic.file) // the test asks for all
	}
	return out
}
