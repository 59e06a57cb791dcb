package e2e

import (
	"strings"
	"testing"
)

// TestWebAttach takes the terminal of a job's own program on the page, leaves it and
// comes back, and ends the job by ending that program. A port of it is reached by the
// command that the page shows.
func TestWebAttach(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick})
	b := newBrowser(t)
	file := s.write(doc{name: "own", command: []string{"sh", "-i"}, gbatch: map[string]any{"terminal": true}}.json())
	id := strings.Fields(s.must("gsubmit", file))[0]
	s.waitRunning(id)
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows("own")

	b.open(base + "jobs/" + id + "?tab=shell")
	b.shows("Attach to its terminal")
	if got := b.text("document.querySelector('.screen')"); got != "null" {
		t.Error("an address took a job's terminal")
	}
	b.press("Attach to its terminal")
	b.shows("The program goes on when you leave")
	b.types("mine=$((40+2)); echo it-is-$mine $$")
	b.printed("it-is-42 1")
	b.accessible("a job's terminal")
	b.press("Detach")
	b.press("Open a shell")
	b.types("echo other-${mine:-none}")
	b.printed("other-none")
	b.press("End the shell")
	b.press("Attach to its terminal")
	b.printed("it-is-42 1") // what was shown before is shown again
	b.types("echo still-$mine")
	b.printed("still-42")

	b.press("Reach a port of this job")
	b.shows("gexec --forward 8888:8888 " + id)
	b.fill("details input", "80")
	b.shows("gexec --forward 8080:80 " + id)
	b.shows("http://localhost:8080/")
	b.accessible("how to reach a port")
	b.fill("details input", "x; rm -rf ~")
	b.shows("A port is a number from 1 to 65535.")
	if got := b.text("document.querySelector('details .command')"); got != "null" {
		t.Error("what is no port is in a command")
	}

	b.types("exit 3")
	b.shows("The job’s program has ended with exit code 3.")
	b.shows("FAILED")
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}
