package e2e

import (
	"strings"
	"testing"
)

// TestWebTabs: a reader may have many tabs open, each of which follows changes and some a
// log as well. A browser opens six connections to a host, and waits with what is more.
func TestWebTabs(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick + "operators: [root]\n"})
	b := newBrowser(t)
	id := strings.TrimSpace(s.must("gsubmit", "--image", image, "--name", "steady", "--", "sh", "-c", `trap "exit 0" TERM; echo first line; while :; do sleep 0.1; done`))
	s.waitRunning(id)
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows("steady")
	tabs := []*browser{}
	for range 4 {
		job := b.tab(base + "jobs/" + id)
		job.shows("first line")
		list := b.tab(base + "jobs")
		list.shows("steady")
		tabs = append(tabs, job, list)
	}
	b.press(id)
	b.press("Cancel")
	b.confirm("Cancel")
	b.shows("CANCELLED")
	for _, tab := range tabs {
		tab.until("it shows the change", "/CANCELLED|No jobs here/.test(document.body.innerText)")
	}
}
