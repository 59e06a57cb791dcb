package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gbatch/internal/hosttest"
)

// TestWebShell enters a running job by the page, as gexec does.
func TestWebShell(t *testing.T) {
	address, err := hosttest.FreeAddress() // the same after a restart
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{ctldConfig: quick, listen: address})
	b := newBrowser(t)
	id := strings.TrimSpace(s.must("gsubmit", "--image", image, "--", "sh", "-c", `trap "exit 0" TERM; while :; do sleep 0.1; done`))
	s.waitRunning(id)
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows(id)

	b.open(base + "jobs/" + id + "?tab=shell")
	b.shows("It ends when you leave this page.")
	if got := b.text("document.querySelector('.screen')"); got != "null" {
		t.Error("an address entered a job")
	}
	b.press("Open a shell")
	b.shows("Ctrl+F6")
	b.types("echo home-$((40+2)) $TERM")
	b.printed("home-42 xterm-256color")
	eventually(t, "the shell has as many lines as its screen, which may grow once more", func() bool {
		b.types("stty size | tr ' ' x")
		return poll(2*time.Second, func() bool {
			return b.text(`(() => { const rows = [...document.querySelectorAll('.xterm-rows > div')]; return rows.some((e) => e.textContent.startsWith(rows.length + 'x')) })()`) == "true"
		})
	})
	b.do("make the window small", chromedp.EmulateViewport(500, 900))
	b.types(`until [ "$(stty size | cut -d' ' -f2)" -lt 80 ]; do sleep 0.1; done; echo nar''row`)
	b.printed("narrow")
	b.hostile()
	b.types("yes 0123456789 | head -c 6000000; echo; echo all-$((1+1))")
	b.printed("all-2")
	b.accessible("a shell")
	b.do("leave the terminal", chromedp.KeyEvent(kb.F6, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	if got := b.text("document.activeElement.textContent"); got != "End the shell" {
		t.Errorf("Ctrl+F6 leads to %q", got)
	}
	b.types("exit 3")
	b.shows("The shell has ended with exit code 3.")

	b.press("Open another shell")
	b.types("echo again-$((40+2))")
	b.printed("again-42")
	s.ctld.kill()
	b.shows("The connection broke off, and with it the shell")
	s.ctld.start()
	s.waitNodes("up", 1)
	b.press("Open another shell")
	b.types("echo begun-$((40+2)); cat") // which ends with the shell
	b.printed("begun-42")
	s.must("gcancel", id)
	b.shows("The shell has ended with exit code")
	b.shows("CANCELLED")
	if got := b.text("document.querySelector('[role=tabpanel] button').disabled"); got != "true" {
		t.Error("a job that has ended can be entered")
	}
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// hostile prints what attacks terminals: nothing leaves the screen.
func (b *browser) hostile() {
	b.t.Helper()
	title := b.text("document.title")
	b.types(`printf '\033]0;evil\007\033]2;evil\007\033]8;;javascript:alert(1)\007cl\033]8;;\007ick\033]52;c;ZXZpbA==\007\033[5i\033[8;5;5t<img src=x onerror=alert(1)>\n'`)
	b.printed("click<img src=x onerror=alert(1)>")
	b.types(`printf '\033[38;2;1;200;3mgr\033[38;2;1;200;3meen\033[0m\n'`)
	b.until("a colour that is not of the palette is shown", "[...document.querySelectorAll('.xterm-rows span')].some((e) => e.textContent === 'green' && e.style.color === 'rgb(1, 200, 3)')")
	if got := b.text("document.querySelectorAll('.screen a, .screen img, .screen style').length + document.title"); got != "0"+title {
		b.t.Errorf("what was printed has left the terminal: %q", got)
	}
}

// types types a line into the terminal.
func (b *browser) types(line string) {
	b.t.Helper()
	b.until("there is a terminal", "document.querySelector('.xterm-helper-textarea')")
	b.do("type "+line, chromedp.SendKeys(".xterm-helper-textarea", line+"\r", chromedp.NodeReady))
}

// printed waits until the terminal shows a text at the beginning of a line.
func (b *browser) printed(text string) {
	b.t.Helper()
	b.until("the terminal shows "+text, "[...document.querySelectorAll('.xterm-rows > div')].some((e) => e.textContent.replaceAll('\\u00a0', ' ').startsWith("+quoted(text)+"))")
}
