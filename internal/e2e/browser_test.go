package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp"

	"gbatch/internal/client"
)

// browser is a real one that shows the web page, with all that it complained of.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	complain []string
}

// newBrowser starts Chromium. Its complaints are looked at when the test ends.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("GBATCH_E2E_REQUIRED") != "" {
			t.Fatal("chromium is missing: install the package chromium")
		}
		t.Skip("SKIPPED: chromium is missing: the web page is not looked at")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(self), chromedp.Env(noNetlinkEnv+"="+path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("window-size", "1300,900"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	if ctx, cancel = chromedp.NewContext(ctx); true {
		t.Cleanup(cancel)
	}
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as this context
		t.Fatalf("start Chromium: %v", err)
	}
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			if m.Type == "error" || m.IsException() {
				b.mu.Lock()
				b.complain = append(b.complain, m.Text+" "+m.URL)
				b.mu.Unlock()
			}
		}
	}()
	return b
}

// heard is all that the console has had of errors.
func (b *browser) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complain)
}

// complaints are what the page's console has had of errors so far, but for those
// that tests make on purpose: of the network, and of markup that is refused.
func (b *browser) complaints() []string {
	var out []string
	for _, c := range b.heard() {
		if !strings.Contains(c, "Failed to load resource") && !strings.Contains(c, "net::ERR_") && !strings.Contains(c, "'TrustedHTML'") {
			out = append(out, c)
		}
	}
	return out
}

// do takes steps; each has the tests' patience.
func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		err := chromedp.Do(ctx, step)
		cancel()
		if err != nil {
			b.t.Fatalf("%s: %v; the page says:\n%s\ncomplaints: %q", what, err, b.text("document.body?.innerText ?? ''"), b.heard())
		}
	}
}

// text is what an expression gives.
func (b *browser) text(expression string) string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		return "no answer: " + err.Error()
	}
	return s
}

// until waits until an expression is true. A page that gives way to the next one meanwhile is asked anew.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	poll := chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(patience))
	b.do("wait until "+what, func(ctx context.Context, target *chromedp.Target) (v chromedp.Void, err error) {
		for {
			_, err = poll(ctx, target)
			if refused, ok := errors.AsType[*cdproto.Error](err); !ok || !strings.Contains(refused.Message, "context") {
				return v, err
			}
			if client.Sleep(ctx, 100*time.Millisecond) != nil {
				return v, err
			}
		}
	})
}

// shows waits until the page has a text.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.until("it shows "+text, "document.body.innerText.includes("+quoted(text)+")")
}

// press presses the button, opens the details or follows the link with a label.
func (b *browser) press(label string) {
	b.t.Helper()
	b.click("press "+label, "//*[self::button or self::a or self::summary][normalize-space()="+quoted(label)+" and not(@disabled)]")
}

// confirm says yes to what the page asks.
func (b *browser) confirm(label string) {
	b.t.Helper()
	b.click("confirm "+label, "//dialog//button[normalize-space()="+quoted(label)+" and not(@disabled)]")
}

// click clicks on what is at an XPath. What moves in that moment, or is made anew, is missed and clicked on again.
func (b *browser) click(what, path string) {
	b.t.Helper()
	for range 3 {
		b.text("(() => { let met = false; const at = () => document.evaluate(" + strconv.Quote(path) + `, document, null, 9).singleNodeValue
			window.addEventListener('click', e => { met ||= Boolean(at()?.contains(e.target)) }, { capture: true }); window.missed = () => !met })()`)
		b.do(what, chromedp.Click(path, chromedp.NodeVisible))
		if b.text("window.missed?.() ?? false") != "true" {
			return
		}
	}
}

// fill types a text in place of what a field has.
func (b *browser) fill(field, text string) {
	b.t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		b.t.Fatal(err)
	}
	b.until(field+" is seen", "document.querySelector("+quoted(field)+")?.checkVisibility()")
	b.text("(() => { const e = document.querySelector(" + quoted(field) + `); e.focus(); e.select(); document.execCommand("insertText", false, ` + string(raw) + ") })()")
}

// open loads a page.
func (b *browser) open(url string) {
	b.t.Helper()
	// From the same address, less what follows #, nothing would be loaded again.
	b.do("open "+url, chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.until("all is drawn", drawn)
}

// drawn is whether a page is there with all its styles: one that could not be loaded
// does not tell its rules.
const drawn = `document.querySelector("#app")?.childElementCount > 0 &&
	[...document.querySelectorAll("link[rel=stylesheet]")].every((l) => { try { return l.sheet.cssRules.length > 0 } catch { return false } })`

// quoted is a text in an expression; tests use none with both kinds of quotes.
func quoted(text string) string {
	if strings.Contains(text, `"`) {
		return "'" + text + "'"
	}
	return `"` + text + `"`
}
