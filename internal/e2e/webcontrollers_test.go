package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWebControllers: operators see on the page which of several controllers leads, how the
// others fare, and which settings differ.
func TestWebControllers(t *testing.T) {
	c := newSeveral(t, siteOptions{ctldConfig: "operators: [root]\n"}, nil, nil)
	b := newBrowser(t)
	b.controllers(c)
	b.accessible("several controllers")
	b.onPhone("several controllers")
	down := c.all[(c.leader()+1)%3]
	down.kill()
	b.shows("does not answer") // without being asked for
	down.start()
	b.until("it follows again", "document.body.innerText.split('follows').length === 3")
	c.first()
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// controllers shows several controllers, on the page of the one that leads.
func (b *browser) controllers(c *several) {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "gadm"), "web")
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+c.socket(c.leader()))
	link, secret, ok := strings.Cut(strings.TrimSpace(execute(cmd).out), "#")
	if !ok {
		b.t.Fatalf("no link to the page: %s", link)
	}
	b.open(link + "#" + secret)
	b.press("Operate")
	b.press("controllers")
	b.shows("leads")
	b.until("two follow", "document.body.innerText.split('follows').length === 3")
	b.shows("limits.grace")
}
