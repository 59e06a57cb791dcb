package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"gbatch/internal/hosttest"
)

// TestWebPage uses the page as a new user does, with real jobs.
func TestWebPage(t *testing.T) {
	address, err := hosttest.FreeAddress() // the same after a restart
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{ctldConfig: quick + "operators: [root]\n", listen: address})
	b := newBrowser(t)
	s.must("gsubmit", "--image", image, "--name", "steady", "--", "sh", "-c", `trap "exit 0" TERM; printf "\033[32mfirst line\033[0m\n"; while :; do sleep 0.1; done`)
	s.must("gsubmit", "--image", image, "--name", "<img src=x onerror=alert(1)>", "--hold", "--", "true")
	link := strings.TrimSpace(s.run("gadm", "web").out)

	b.open(link)
	b.shows("steady")
	b.shows("<img src=x onerror=alert(1)>")
	if got := b.text("location.hash + document.cookie + document.querySelectorAll('td img').length"); got != "0" {
		t.Errorf("a secret in the address or where scripts read it, or markup of a name: %q", got)
	}
	if got := b.text("(() => { try { document.body.innerHTML = '<b>x</b>' } catch { return 'refused' } })()"); got != "refused" {
		t.Errorf("text became markup: %s", got)
	}
	b.fill("input[type=search]", "STEADY running")
	b.until("others are gone", "document.querySelectorAll('td.name').length === 1")
	b.press("1")
	b.shows("first line")
	if got := b.text("document.querySelector('.log .fg2').textContent"); got != "first line" {
		t.Errorf("colours of the output: %q", got)
	}
	b.press("use")
	b.until("curves are drawn", "document.querySelectorAll('.plot canvas').length >= 2")
	b.shows("of 4 GiB")
	b.accessible("curves")
	b.press("Cancel")
	b.shows("This ends 1 job:")
	b.confirm("Cancel")
	b.shows("CANCELLED") // without being loaded again
	b.accessible("a job")

	b.press("Submit")
	b.fill("textarea", `{"name": "typed", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "`+image+`", "command": "echo from the page"}, "frobnicate": 1}}`)
	b.shows("request.frobnicate") // without being asked for
	b.text(`(() => {
		const e = document.querySelector('textarea'), at = e.value.indexOf('cpuMemoryGb')
		e.setSelectionRange(at, at)
		e.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true }))
	})()`)
	b.shows("request.resources.cpuMemoryGb: ")
	b.press("All fields of the document")
	b.fill("details input", "retry window")
	b.shows("gbatch.retry.window: ")
	b.accessible("a document with a mistake, and what fields are for")

	b.convert()
	b.advice(s)
	b.press("Submit")

	s.ctld.kill()
	b.press("Check")
	b.shows("The controller does not answer.")
	s.ctld.start()
	b.until("the banner is gone", "!document.querySelector('.banner')")
	if got := b.text("document.querySelector('textarea').value"); !strings.Contains(got, "typed") {
		t.Errorf("what was typed is lost: %q", got)
	}
	b.fill("textarea", `{"name": "typed", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "`+image+`", "command": "echo from the page"}}}`)
	b.do("submit", chromedp.Click("//main//button[normalize-space()='Submit' and not(@disabled)]", chromedp.NodeVisible))
	b.shows("from the page")
	b.shows("FINISHED")

	b.press("Cluster")
	b.shows(s.nodeName(0))
	b.plan(s)
	b.press("Drain")
	b.fill("dialog input", "new disk")
	b.confirm("Drain")
	b.shows("new disk")
	b.accessible("the cluster")
	b.press("Resume")
	b.confirm("Resume")
	b.until("the node is up", "document.querySelector('.node .state')?.textContent === 'up'")

	b.press("When could I have …?")
	b.fill("details input", "1000")
	b.press("Ask")
	b.shows("no node has a GPU")
	b.operate(s)

	b.press("Shares")
	b.shows("Shares and use")
	b.shows("too short for advice")
	b.accessible("shares")
	b.press("Log out")
	b.shows("You are logged out.")
	b.open(link)
	b.shows("was revoked") // the link is used up
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// convert pastes a batch script over the document, and puts it back.
func (b *browser) convert() {
	b.t.Helper()
	b.text(`(() => {
		const e = document.querySelector('textarea'), d = new DataTransfer()
		e.focus(); e.select()
		d.setData('text/plain', '#!/bin/bash\n#SBATCH --job-name=pasted --cpus-per-task=2 --mail-user=ann@example.org\necho hi\n')
		e.dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true }))
	})()`)
	b.shows("This was a file of slurm.")
	b.until("the form has its name", "[...document.querySelectorAll('.fields input')].some((e) => e.value === 'pasted')")
	b.accessible("a conversion")
	b.press("Put the file back")
	b.shows("The text is not JSON")
	b.press("Convert a file of another system")
	b.shows("This was a file of slurm.")
	b.fill("textarea", "good morning")
	b.press("Convert a file of another system")
	b.shows("is in no format that is known here")
	b.fill("textarea", `{"name": "typed"}`)
}

// advice lets a job that a reservation keeps waiting start by a click.
func (b *browser) advice(s *site) {
	b.t.Helper()
	s.must("gadm", "reserve", "soon", "--nodes", s.nodeName(0), "--from", "+2h", "--for", "1h", "--maintenance")
	id := strings.TrimSpace(s.must("gsubmit", "--image", image, "--name", "long", "--time", "5h", "--", "true"))
	b.press("Jobs")
	b.press(id)
	b.shows("What would help")
	b.press("Do it")
	b.accessible("a question about advice")
	b.press("Leave it")
	b.press("Do it")
	b.confirm("Limit it")
	b.shows("FINISHED")
	s.must("gadm", "unreserve", "soon")
}

// plan looks at what the node does and is to do, in the bars and behind them.
func (b *browser) plan(s *site) {
	b.t.Helper()
	id := strings.TrimSpace(s.must("gsubmit", "--image", image, "--name", "planned", "--time", "5h", "--", "sleep", "1000"))
	s.must("gadm", "reserve", "disks", "--nodes", s.nodeName(0), "--from", "+7h", "--for", "1h", "--maintenance")
	b.press("plan")
	b.until("the bar of the job is there", "document.querySelector('.planbar.runs')?.textContent.includes('running: job "+id+" planned of root')")
	b.until("the reservation is there", "document.querySelector('.planbar.ends')?.textContent.includes('maintenance: disks')")
	b.accessible("the plan")
	b.press(id)
	b.shows("planned")
	b.press("Extend")
	b.accessible("a change")
	b.fill("dialog input", "6")
	b.confirm("Change")
	b.shows("of 6 h")
	s.must("gcancel", id)
	later := strings.TrimSpace(s.must("gsubmit", "--hold", "--image", image, "--name", "later", "--time", "5h", "--", "sleep", "1"))
	b.press("Jobs")
	b.press(later)
	b.press("Change")
	b.fill("dialog label:nth-of-type(2) input", "two")
	b.confirm("Change")
	b.shows("is no number of hours")
	b.fill("dialog label:nth-of-type(2) input", "2")
	b.confirm("Change")
	b.shows("or less to start sooner, 2 h at least")
	s.must("gcancel", later)
	s.must("gadm", "unreserve", "disks")
	b.press("Cluster")
}

// operate reserves a node and ends that, and looks at the rest of the page for operators.
func (b *browser) operate(s *site) {
	b.t.Helper()
	b.press("Operate")
	b.shows("Nothing is reserved.")
	b.press("Reserve nodes")
	b.fill("dialog input", "<b>course")
	b.confirm("Reserve")
	b.shows("name") // what is wrong with it
	b.accessible("a reservation with mistakes")
	b.fill("dialog input", "course")
	b.text(`(() => {
		const e = document.querySelector('dialog select')
		e.value = 'each day'
		e.dispatchEvent(new Event('change', { bubbles: true }))
	})()`)
	b.fill("dialog label:nth-child(7) input", "1")
	b.fill("dialog label:nth-child(9) input", "root")
	b.accessible("a reservation that comes again")
	b.confirm("Reserve")
	b.shows("user root")
	b.shows("each day")
	b.until("three times are told", "document.querySelectorAll('td .quiet time').length === 3")
	b.accessible("reservations")
	before := b.text("document.querySelector('td time').dateTime")
	b.press("End")
	b.do("skip a time", chromedp.Click("dialog input[type=checkbox]", chromedp.NodeVisible))
	b.confirm("Skip it once")
	b.until("it comes a day later", "document.querySelector('td time') && document.querySelector('td time').dateTime !== "+quoted(before))
	b.press("End")
	b.confirm("End it")
	b.shows("Nothing is reserved.")
	b.press("audit")
	b.shows("/v1/reservations")
	b.accessible("the audit log")
	b.press("rules")
	b.shows("operators")
	b.whatIf(s)
	b.press("health")
	b.shows("GET /v1/jobs")
	b.accessible("health")
	b.press("controllers")
	b.shows("This controller is the only one")
	b.accessible("controllers")
}

// whatIf asks what more nodes would be to the job that waits, and what a rule that is not.
func (b *browser) whatIf(s *site) {
	b.t.Helper()
	var ids []string
	for range 2 { // the node has room for one
		ids = append(ids, strings.TrimSpace(s.must("gsubmit", "--image", image, "--name", "<b>all", "--cpus", "8", "--mem", "1G", "--", "sleep", "1000")))
	}
	b.press("What if …?")
	b.fill("details.whatif label:nth-child(2) input", "1x8xh100")
	b.press("Simulate")
	b.shows("would start sooner")
	b.accessible("what would be")
	b.fill("details.whatif input", "colour=<b>red")
	b.press("Simulate")
	b.shows("there is no such rule")
	s.must("gcancel", ids[0], ids[1])
}

// accessible looks for what keeps people from using the page that is shown, by the
// rules of WCAG AA that a program can check, in the dark and in the light theme.
func (b *browser) accessible(what string) {
	b.t.Helper()
	axe, err := os.ReadFile("../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.t.Fatalf("%v: run scripts/build-web", err)
	}
	b.do("load the rules", func(ctx context.Context, target *chromedp.Target) (v chromedp.Void, err error) {
		_, err = chromedp.Evaluate[any](string(axe)+"; undefined")(ctx, target)
		return v, err
	})
	for _, theme := range []string{"dark", "light"} {
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`(() => {
			document.documentElement.style.colorScheme = `+quoted(theme)+`
			for (const r of [...document.styleSheets].flatMap((s) => [...s.cssRules])) {
				if (r.conditionText && /prefers-color-scheme|^all$/.test(r.conditionText)) r.media.mediaText = `+quoted(themes[theme])+`
			}
			return axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then((r) =>
				r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(' | ')).join('\n'))
		})()`, chromedp.EvalAwaitPromise))
		if err != nil || got != "" {
			b.t.Errorf("%s, %s: %v\n%s", what, theme, err, got)
		}
	}
}

// themes are when the rules of the dark theme hold, as its style sheet is made to say.
var themes = map[string]string{"dark": "all", "light": "(prefers-color-scheme: dark)"}
