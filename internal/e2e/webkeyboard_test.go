package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestWebKeyboard uses the page by keys alone: each thing is reached by Tab, is seen
// when it has the focus, and where something is over the focus is where it was.
func TestWebKeyboard(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick + "operators: [root]\n"})
	b := newBrowser(t)
	s.must("gsubmit", "--image", image, "--name", "steady", "--", "sh", "-c", `trap "exit 0" TERM; echo first line; while :; do sleep 0.1; done`)
	s.must("gsubmit", "--image", image, "--name", "held", "--hold", "--", "true")
	b.open(strings.TrimSpace(s.must("gadm", "web")))
	b.shows("held")

	b.reach("To the content", kb.Enter)
	b.reach("Search", "steady")
	b.until("others are gone", "document.querySelectorAll('td.name').length === 1")
	b.reach("Choose job 1", " ")
	b.shows("1 chosen")
	b.reach("1", kb.Enter)
	b.shows("first line")

	b.reach("Cancel", kb.Enter)
	b.shows("This ends 1 job:")
	b.keys(kb.Escape)
	b.until("the question is gone", "!document.querySelector('dialog')")
	if got := b.text(focused); got != "Cancel" {
		t.Errorf("after a question that was left the focus is on %q", got)
	}
	b.keys(kb.Enter)
	b.shows("This ends 1 job:")
	b.reach("Leave it", "")
	b.reach("Cancel", kb.Enter)
	b.shows("CANCELLED")
	if got := b.text(focused); got == "nothing" {
		t.Error("when the job was cancelled the focus was lost")
	}

	b.reach("Submit", kb.Enter)
	b.reach("Job document, or a job file of another system", "")
	b.do("choose all of it", chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.keys(`{"name": "typed", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "` + image + `", "command": "echo by keys"}}}`)
	b.reach("Check", kb.Enter)
	b.shows("It would be taken")
	b.reach("Submit", kb.Enter)
	b.shows("by keys")
	b.shows("FINISHED")

	b.reach("Cluster", kb.Enter)
	b.shows(s.nodeName(0))
	b.reach("Drain", kb.Enter)
	b.until("its reason is asked for", "document.activeElement.matches('dialog input')")
	b.keys("new disk" + kb.Enter)
	b.shows("new disk")
	b.reach("Resume", kb.Enter)
	b.until("it is asked", "document.querySelector('dialog')")
	b.reach("Resume", kb.Enter)
	b.until("the node is up", "document.querySelector('.node .state')?.textContent === 'up'")
	b.reach("plan", kb.Enter)
	b.shows("Bars end with the time limit")
	b.reach("Log out", kb.Enter)
	b.shows("You are logged out.")
}

// TestWebKeyboardOperator is the same of what operators have, of ports, and of the form
// to log in that lies over what is shown when a session has ended.
func TestWebKeyboardOperator(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick + "admins: [root]\nweb: {jobsDomain: jobs.localhost}\n", nodeConfig: "gpu: {simulate: \"h100:2\"}\n"})
	b := newBrowser(t)
	runs := s.submit(doc{name: "steady", command: idle, gpus: 2})
	s.waitRunning(runs)
	s.submit(doc{name: "waits", command: idle, gpus: 2})
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows("waits")
	b.reach("Operate", kb.Enter)
	b.reach("Reserve nodes", kb.Enter)
	b.until("it is asked for what", "document.activeElement.matches('dialog *')")
	b.keys(kb.Escape)
	b.until("the question is gone", "!document.querySelector('dialog')")
	b.reach("rules", kb.Enter)
	b.reach("What would a reload change?", kb.Enter)
	b.shows("The file says what is in force.")
	b.reach("What if …?", kb.Enter)
	b.reach("Other rules", "half_life=14d")
	b.reach("More nodes", "1x4xh100"+kb.Enter)
	b.shows("1 job of 1 would start sooner")
	b.reach("Jobs for which it makes most of a difference", "")
	b.reach("audit", kb.Enter)
	b.shows("POST /v1/session")
	b.reach("health", kb.Enter)
	b.shows("Requests that wait")
	b.reach("controllers", kb.Enter)
	b.shows("This controller is the only one")

	b.open(base + "jobs/" + runs)
	b.shows("steady")
	b.reach("Reach a port of this job", kb.Enter)
	b.reach("Port in the job", "0")
	b.shows("A port is a number from 1 to 65535.")
	b.keys(kb.Backspace + "8889")
	b.reach("Open in a tab", "")
	b.reach("Copy the command", "")

	b.reach("Extend", kb.Enter)
	b.until("it is asked for what", "document.activeElement.matches('dialog *')")
	b.keys("7")
	typed := b.text("document.activeElement.value")
	s.revoke("root")
	token := strings.TrimSpace(s.must("gadm", "token", "create"))
	b.until("it asks who it is", "document.activeElement.type === 'password'")
	b.keys(kb.Escape)
	b.until("Escape does not leave it", "document.activeElement.matches('.login *')")
	b.reach("Token", token+kb.Enter)
	b.until("it goes on", "!document.querySelector('.login')")
	b.until("what was typed is there", "[...document.querySelectorAll('dialog input')].some((e) => e.value === "+quoted(typed)+")")
	if got := b.text(focused); got == "nothing" {
		t.Error("after the login the focus is lost")
	}
}

// focused is what a reader is told of what has the focus; "unseen" stands in front of what
// is not in sight, or does not look different by it.
const focused = `(() => {
	const e = document.activeElement
	if (!e || e === document.body) return 'nothing'
	const name = (e.ariaLabel || e.labels?.[0]?.innerText || e.innerText || e.tagName).trim()
	const r = e.getBoundingClientRect()
	const seen = e.tagName === 'MAIN' || r.width && r.bottom > 0 && r.top < innerHeight && getComputedStyle(e).outlineStyle !== 'none'
	return (seen ? '' : 'unseen ') + name
})()`

// keys types.
func (b *browser) keys(text string) {
	b.t.Helper()
	b.do("type", chromedp.KeyEvent(text))
}

// reach goes on by Tab until something has the focus, and types there.
func (b *browser) reach(what, text string) {
	b.t.Helper()
	var passed []string
	for range 200 {
		b.keys(kb.Tab)
		now := b.text(focused)
		if strings.HasPrefix(now, "unseen ") {
			b.t.Errorf("on the way to %s: the focus is not seen on %.60q", what, now)
		}
		if now == what {
			if text != "" {
				b.keys(text)
			}
			return
		}
		passed = append(passed, now)
	}
	b.t.Fatalf("%s is not reached by Tab; there are %.2000q", what, passed)
}
