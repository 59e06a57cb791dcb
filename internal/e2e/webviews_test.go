package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// markup is what attacks a page, and turns the order of the text behind it.
const markup = "<img src=x onerror=alert(1)>\u202egnp.exe"

// TestWebViews looks at each view of the page with texts that attack it: names, reasons,
// logs, labels. They are shown as they are, letter by letter; the view can be used by
// those who do not see or see little of it, and fits on a phone.
func TestWebViews(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick + "operators: [root]\n", nodeConfig: "gpu: {simulate: \"h100:2\"}\nfeatures: [disk=ssd]\n"})
	b := newBrowser(t)
	hostile := func(d doc) string {
		d.name, d.env = markup, map[string]string{"EVIL": markup}
		return s.submit(d)
	}
	runs := hostile(doc{command: []string{"sh", "-c", `trap "exit 0" TERM; printf '%s\n' "$EVIL" "a$EVIL"; head -c 10000 /dev/zero | tr '\0' x; echo; while :; do sleep 0.1; done`}, gpus: 1})
	failed := hostile(doc{command: []string{"/bin/" + markup}})
	s.wait(failed)
	s.waitRunning(runs)
	waits := hostile(doc{gpus: 2})
	array := hostile(doc{gpus: 2, gbatch: map[string]any{"tasks": "0-3"}})
	s.must("gadm", "reserve", "disks", "--nodes", s.nodeName(0), "--from", "+7h", "--for", "1h", "--maintenance")
	s.must("gadm", "drain", s.nodeName(0), "-r", strings.Repeat(markup, 3))
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.open(link)
	b.shows("<img")

	views := []struct{ path, shows string }{
		{"jobs?user=*&all=true", `onerror=alert(1)>\u202egnp.exe`},
		{"jobs/" + runs, `a<img src=x onerror=alert(1)>\u202egnp.exe`},
		{"jobs/" + runs + "?tab=use", "<img"},
		{"jobs/" + runs + "?tab=timeline", "RUNNING"},
		{"jobs/" + runs + "?tab=document", `"EVIL": "<img src=x onerror=alert(1)>\u202egnp.exe"`},
		{"jobs/" + runs + "?tab=shell", "Open a shell"},
		{"jobs/" + failed, `/bin/<img src=x onerror=alert(1)>`},
		{"jobs/" + waits, "Why it waits"},
		{"jobs/" + array, "<img"},
		{"submit?again=" + runs, "It would be taken"},
		{"cluster", `<img src=x onerror=alert(1)>\u202egnp.exe`},
		{"cluster?view=plan", "disks"},
		{"shares", "Shares and use"},
		{"operate", "disks"},
		{"operate?tab=rules", "operators"},
		{"operate?tab=audit", `<img src=x onerror=alert(1)>\u202egnp.exe`},
		{"operate?tab=health", "GET /v1/jobs"},
		{"operate?tab=controllers", "the only one"},
		{"nowhere", "There is no such page"},
	}
	for _, v := range views {
		b.view(base, v.path, v.shows, "document.body.innerText")
	}
	b.do("use a desk", chromedp.EmulateViewport(1300, 900))
	b.questions(base, runs)
	b.press("Log out")
	b.shows("You are logged out.")
	b.accessible("the login")
	b.onPhone("the login")
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
	b.policed()
}

// view opens a view at a desk, waits until a text of it has another one, and holds that
// nothing in it acts, that it can be used by all, and that it fits on a phone.
func (b *browser) view(base, path, shows, text string) {
	b.t.Helper()
	b.do("use a desk", chromedp.EmulateViewport(1300, 900))
	b.open(base + path)
	b.until(path+" shows "+shows, fmt.Sprintf("(%s).includes(%s)", text, jsText(shows)))
	b.harmless(path)
	b.accessible(path)
	b.onPhone(path)
}

// policed tries by a script of the page what its policy refuses.
func (b *browser) policed() {
	b.t.Helper()
	for _, try := range []string{
		`const e = document.createElement('script'); e.textContent = '1'; document.body.append(e)`,
		`const e = document.createElement('script'); e.src = 'https://127.0.0.1:1/x.js'; document.body.append(e)`,
		`const e = document.createElement('style'); e.textContent = 'p {}'; document.body.append(e)`,
		`const e = document.createElement('img'); e.src = 'https://127.0.0.1:1/x.png'; document.body.append(e)`,
		`const e = document.createElement('iframe'); e.src = '/web/'; document.body.append(e)`,
		`const e = document.createElement('form'); e.action = '/v1/session'; e.method = 'post'; document.body.append(e); e.submit()`,
		`document.body.setAttribute('style', 'color: red')`,
		`document.body.setAttribute('onclick', '1')`,
		`fetch('https://127.0.0.1:1/').catch(() => 0)`,
		`new WebSocket('wss://127.0.0.1:1/')`,
		`setTimeout('1')`,
	} {
		b.text(`(() => { window.refused = ''; document.addEventListener('securitypolicyviolation', (e) => (window.refused = e.effectiveDirective), { once: true }); try { ` + try + ` } catch (e) {} })()`)
		b.until("the browser refuses "+try, "window.refused")
	}
}

// jsText is a text in an expression; backslashes are letters.
func jsText(text string) string { return "String.raw`" + text + "`" }

// harmless looks for what became markup, ran, or turns the order of what stands beside it.
func (b *browser) harmless(view string) {
	b.t.Helper()
	const found = `document.querySelectorAll('#app :is(img, b.evil, script, iframe, [onerror])').length + (/[\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText + [...document.querySelectorAll('[title]')].map((e) => e.title)) ?? '')`
	if got := b.text(found); got != "0" {
		b.t.Errorf("%s: markup, or characters that turn the order: %q", view, got)
	}
}

// onPhone looks whether a view is as wide as a phone.
func (b *browser) onPhone(view string) {
	b.t.Helper()
	b.do("use a phone", chromedp.EmulateViewport(360, 740))
	const wide = `(() => {
		if (document.documentElement.scrollWidth <= 360 && (document.querySelector('main')?.scrollWidth ?? 0) <= 360) return ''
		return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.virtual, .log, .sideways, .document, .changes, .plots, table .chart')).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join(' | ') || 'something'
	})()`
	var got string
	if !poll(patience, func() bool { got = b.text(wide); return got == "" }) { // curves are drawn anew a moment later
		b.t.Errorf("%s is wider than a phone: %s", view, got)
	}
}

// questions are asked about a job with such a name.
func (b *browser) questions(base, id string) {
	b.t.Helper()
	b.open(base + "jobs/" + id)
	for button, title := range map[string]string{"Cancel": "Cancel?", "Run again": "Run again?", "Extend": "Change job " + id} {
		b.press(button)
		b.shows(title)
		b.harmless(title)
		b.accessible(title)
		b.onPhone(title)
		b.do("use a desk", chromedp.EmulateViewport(1300, 900))
		b.do("leave it", chromedp.Click("//dialog//button[normalize-space()='Leave it']", chromedp.NodeVisible))
		b.until("it is gone", "!document.querySelector('dialog')")
	}
}
