package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// TestWebNames looks at the views that show names of nodes, GPUs, projects, partitions,
// classes and reservations. What a node or an operator may say freely attacks the page;
// names that have a rule are as long as that allows, and others are refused.
func TestWebNames(t *testing.T) {
	long := func(of string) string { return strings.Repeat(of, 63) }
	s := newSite(t, siteOptions{
		ctldConfig: quick + fmt.Sprintf("operators: [root]\nprojects: [{name: %s}]\ndefaultProject: %[1]s\nlicenses: {%s: 4}\npartitions: [{name: %s, allNodes: true, default: true, reason: %q}]\npolicy: {qos: {%s: {priority: 10}}}\n",
			long("p"), long("l"), long("q"), markup, long("c")),
		nodeConfig: "gpu: {simulate: \"h100:2\"}\n",
	})
	name, model := long("n"), "H100 "+markup
	evil := &api.SyncRequest{Instance: "i", Boot: "b", InventoryHash: "h", Unhealthy: []string{markup}, Inventory: &node.Inventory{
		Hostname: markup, Cluster: 1, CPUs: 8, MemBytes: 32 << 30, Driver: markup, Version: markup, Bridge: true, Features: []string{markup, "rack=" + markup},
		GPUs: []node.GPU{{UUID: markup, Model: model, MemBytes: 80 << 30, NUMA: -1, Unhealthy: markup}, {UUID: "GPU-2", Index: 1, Model: model, MemBytes: 80 << 30, NUMA: -1}},
	}}
	sync := func(name string) error { _, err := s.api.NodeSync(t.Context(), name, evil); return err }
	put := func(p api.Project) error { _, err := s.api.PutProject(t.Context(), p, true); return err }
	if err := sync(name); err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(time.Hour)
	kept := api.Reservation{Name: markup, Start: from, End: from.Add(time.Hour), Nodes: []string{s.nodeName(0)}, Maintenance: true, Reason: markup}
	if _, err := s.api.Reserve(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	kept.Name, kept.Start, kept.End = strings.Repeat(long("r"), 3), from.Add(2*time.Hour), from.Add(3*time.Hour)
	if _, err := s.api.Reserve(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a node": sync(markup), "a longer node": sync(long("n") + "n"),
		"a project": put(api.Project{Name: markup}), "a project's name": put(api.Project{Name: long("p") + "pp"}),
	} {
		if err == nil {
			t.Errorf("%s with such a name is taken", what)
		}
	}
	id := s.submit(doc{name: markup, command: idle, gbatch: map[string]any{"qos": long("c"), "licenses": map[string]any{long("l"): 1}}, resources: map[string]any{"features": []string{"rack=" + markup}}, gpus: 1})

	b := newBrowser(t)
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows("<img")
	for _, v := range []struct{ path, shows string }{
		{"jobs?user=*", long("p")},
		{"jobs/" + id, "Why it waits"},
		{"cluster", name},
		{"cluster", model[:20]},
		{"cluster?view=plan", "onerror"},
		{"shares", long("p")},
		{"operate", "onerror=alert(1)>"},
		{"operate", kept.Name},
		{"operate?tab=rules", long("q")},
		{"operate?tab=audit", kept.Name},
		{"operate?tab=health", "GET /v1/jobs"},
		{"submit?again=" + id, long("c")},
	} {
		b.view(base, v.path, v.shows, "document.body.innerText + [...document.querySelectorAll('textarea, input, [title]')].map((e) => e.title + (e.value ?? ''))")
	}
	b.do("use a desk", chromedp.EmulateViewport(1300, 900))
	b.open(base + "cluster")
	b.shows(name)
	b.press("When could I have …?")
	b.until("the models are listed", fmt.Sprintf("[...document.querySelectorAll('option')].some((e) => (e.textContent + e.value).includes(%s))", jsText(model[:20])))
	b.harmless("when")
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}
