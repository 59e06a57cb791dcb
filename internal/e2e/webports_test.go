package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// TestWebPorts opens a notebook of a job by a click, with its token and its WebSocket, at
// an address that is another origin than the page. The notebook attacks: it learns nothing
// of the session, and what it asks of the controller is refused. It ends with the session.
func TestWebPorts(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick + "web: {jobsDomain: jobs.localhost}\n"})
	b := newBrowser(t)
	build := exec.Command("go", "build", "-o", s.project()+"/notebook", "./testdata/notebook")
	if err := os.MkdirAll(s.project(), 0o755); err != nil {
		t.Fatal(err)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the notebook: %v\n%s", err, out)
	}
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	origin := strings.TrimSuffix(base, "/web/")
	id := s.submit(doc{name: "notebook", command: []string{"/project/notebook"}, storage: []any{"/project"}, env: map[string]string{"PAGE": origin}})
	s.waitRunning(id)
	b.open(link)
	b.shows("notebook")
	b.open(base + "jobs/" + id)
	b.shows("/lab?token=abc")
	b.press("Reach a port of this job")
	b.shows("Open in a tab")
	b.accessible("how to open a port")
	b.onPhone("how to open a port")
	b.do("use a desk", chromedp.EmulateViewport(1300, 900))

	tab := b.opens("Open in a tab", ".jobs.localhost")
	for range 4 {
		tab.until("it is loaded", "document.readyState === 'complete'")
		if tab.text("location.protocol") != "chrome-error:" {
			break
		}
		tab = b.opens("Open in a tab", ".jobs.localhost") // a container's interface has come or gone
	}
	tab.until("the notebook works", "document.getElementById('out')?.textContent.includes('hello')")
	if got := tab.text("location.pathname + location.search + location.hash"); got != "/lab?token=abc&page="+origin {
		t.Errorf("it begins at %s", got)
	}
	var got struct {
		Cookie, Own, Socket string
		Include, Omit       any
		Heard               map[string]string
	}
	if err := json.Unmarshal([]byte(tab.text("document.getElementById('out').textContent")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Socket != "heard hello" || got.Cookie != "" || !strings.Contains(got.Own, "own=1") || got.Include != "refused" || got.Omit != "refused" {
		t.Errorf("the notebook has %+v", got)
	}
	if h := got.Heard; h["cookie"] != "own=1" || h["authorization"] != "token abc" || h["host"] != "localhost:8888" || h["origin"] != "http://localhost:8888" {
		t.Errorf("the notebook heard %v", h)
	}
	b.shows("Opened in another tab.")
	b.shows("RUNNING") // what the notebook asked did not cancel it

	b.press("Log out")
	b.shows("You are logged out.")
	tab.until("the notebook's WebSocket is closed", "document.title === 'closed'")
	tab.do("load it again", chromedp.Reload())
	tab.shows("was revoked")
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// opens presses a button, and is the tab that opens at an address with a text.
func (b *browser) opens(label, at string) *browser {
	b.t.Helper()
	id, ok := b.newTab(label, at)
	for range 2 { // the page may have been drawn anew just then
		if !ok {
			id, ok = b.newTab(label, at)
		}
	}
	if !ok {
		b.t.Fatalf("no tab opens at %s; the page says:\n%s", at, b.text("document.body.innerText"))
	}
	own, end := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id))
	b.t.Cleanup(end)
	if err := chromedp.Do(own); err != nil { // what looks at the tab lives as long as this context
		b.t.Fatalf("look at the tab of %s: %v", label, err)
	}
	return &browser{t: b.t, ctx: own}
}

// newTab presses a button, and says which tab opens in a third of the tests' patience.
func (b *browser) newTab(label, at string) (target.ID, bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience/3)
	defer cancel()
	found := chromedp.WaitNewTarget(ctx, func(i *target.Info) bool { return strings.Contains(i.URL, at) })
	b.press(label)
	select {
	case id, ok := <-found:
		return id, ok
	case <-ctx.Done():
		return "", false
	}
}
