package e2e

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"gbatch/internal/hosttest"
)

// TestWebSessions uses the page with a session that ends, as two users one after the other and
// over a network that brings nothing for a while: nothing typed is lost, and nobody
// sees of another what the API does not tell them.
func TestWebSessions(t *testing.T) {
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{listen: address, ctldConfig: quick + "operators: [oda]\nprojects:\n  - name: default\n  - name: closed\n    members: [root, oda]\n"})
	hidden := s.submit(doc{name: "hush-hush", owner: "closed", command: sh("echo hush-output; trap 'exit 1' TERM; sleep 1000 & wait"), env: map[string]string{"HUSH": "hush-value"}})
	s.waitRunning(hidden)
	b := newBrowser(t)
	base := "https://" + address + "/web/"

	t.Run("ended", func(t *testing.T) { b.sessionEnds(s, base) })
	t.Run("other_user", func(t *testing.T) { b.otherUser(s, base, hidden) })
	t.Run("tabs", func(t *testing.T) { b.twoTabs(s, base) })
	t.Run("slow", func(t *testing.T) { b.slow(s, address) })
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the page complained: %q", list)
	}
}

// enter logs in by a token, as somebody.
func (b *browser) enter(s *site, user string, flags ...string) {
	b.t.Helper()
	b.shows("Or paste a token")
	b.fill(".login input", strings.TrimSpace(s.must("gadm", append([]string{"token", "create", "-u", user}, flags...)...)))
	b.press("Log in")
	b.until(user+" is logged in", "!document.querySelector('.login') && document.querySelector('header').innerText.includes('"+user+"')")
}

// revoke ends all sessions of a user.
func (s *site) revoke(user string) {
	s.t.Helper()
	for line := range strings.Lines(s.must("gadm", "token", "list", "-a")) {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(line, user) && !strings.Contains(line, "revoked") {
			s.must("gadm", "token", "revoke", f[0])
		}
	}
}

// sessionEnds has a session revoked below a form and below a question, and another that
// runs out: the page says so, and goes on where it was.
func (b *browser) sessionEnds(s *site, base string) {
	b.open(base + "submit")
	b.enter(s, "oda")
	b.fill("textarea", `{"name": "typed"}`)
	s.revoke("oda")
	b.shows("nothing that you typed is lost") // without being asked for
	b.accessible("the login over a page")
	b.do("leave it by Escape", chromedp.KeyEvent("\x1b"), chromedp.KeyEvent("\x1b"))
	b.fill(".login input", "no-such-token")
	b.press("Log in")
	b.shows("not one of this controller's")
	b.enter(s, "oda")
	if got := b.text("document.querySelector('textarea').value"); got != `{"name": "typed"}` {
		b.t.Errorf("what was typed is lost: %q", got)
	}

	b.press("Cluster")
	b.press("Drain")
	b.fill("dialog input", "new disk")
	s.revoke("oda")
	b.shows("nothing that you typed is lost")
	b.enter(s, "oda", "--for", "10s") // a session ends with its token
	if got := b.text("document.querySelector('dialog input').value"); got != "new disk" {
		b.t.Errorf("what was typed into a question is lost: %q", got)
	}
	b.confirm("Drain")
	b.shows("new disk")
	b.shows("nothing that you typed is lost")
	b.enter(s, "oda")
	b.press("Resume")
	b.confirm("Resume")
	b.until("the node is up", "document.querySelector('.node .state')?.textContent === 'up'")
}

// otherUser logs out, and in as one who is not in the closed project: nothing of the first is left, and
// no place of the page shows what is not theirs.
func (b *browser) otherUser(s *site, base, hidden string) {
	b.open(base + "jobs?user=*&text=hush")
	b.shows("hush-hush")
	b.press("Submit")
	b.fill("textarea", `{"name": "hush-draft"}`)
	b.press("Log out")
	b.shows("You are logged out.")
	if got := b.text("/hush/.test(document.documentElement.outerHTML + location + JSON.stringify([{...sessionStorage}, {...localStorage}]))"); got != "false" {
		b.t.Error("something of a user who logged out is left")
	}
	b.enter(s, "ann")
	b.press("Submit")
	b.until("the form is there", "document.querySelector('textarea')")
	b.nothing("the form after another user")
	for place, says := range map[string]string{
		"jobs?user=*": hidden, "jobs?user=*&text=hush-hush": "No jobs here", "jobs/" + hidden: "", "jobs/" + hidden + "?tab=use": "", "jobs/" + hidden + "?tab=timeline": "",
		"jobs/" + hidden + "?tab=document": "", "submit?again=" + hidden: "Submit", "cluster": s.nodeName(0), "cluster?view=plan": s.nodeName(0), "shares": "Shares and use",
		"operate": "Nothing", "operate?tab=rules": "operator", "operate?tab=audit": "operator", "operate?tab=health": "operator", "operate?tab=controllers": "",
	} {
		b.open(base + place)
		b.until(place+" is drawn", "document.querySelector('main').innerText && !/reading …/.test(document.querySelector('main').innerText)")
		if says != "" {
			b.shows(says)
		}
		b.nothing(place)
	}
	b.open(base + "cluster")
	b.shows(s.nodeName(0))
	if got := b.text("/Drain|Operate/.test(document.body.innerText)"); got != "false" {
		b.t.Error("a user is shown what operators do")
	}
	for _, asked := range []string{"nodes/" + s.nodeName(0) + "/drain", "jobs/actions/cancel", "policy/reload"} {
		b.text("fetch('/v1/" + asked + `', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"ids": ["` + hidden + `"], "reason": "x"}' }).then((a) => a.text()).then((t) => (window.said = t)), (window.said = '')`)
		b.until(asked+" is answered", "window.said")
		if got := b.text("window.said"); !strings.Contains(got, `"denied"`) {
			b.t.Errorf("%s: %s", asked, got)
		}
		b.nothing(asked)
	}
	if s.job(hidden).State.Final() || strings.Contains(s.must("ginfo"), "drain") {
		b.t.Error("a user did what they may not")
	}
}

// nothing looks for what of the closed project is nowhere on the page.
func (b *browser) nothing(where string) {
	b.t.Helper()
	const look = "(/.{0,40}(hush-|HUSH).{0,40}/.exec(document.querySelector('main').outerHTML + [...document.querySelectorAll('textarea')].map((e) => e.value) + (window.said ?? '')) ?? [''])[0]"
	if got := b.text(look); got != "" {
		b.t.Errorf("%s shows %q", where, got)
	}
}

// twoTabs lets one tab log out and another user in: the other tab shows nothing of the first.
func (b *browser) twoTabs(s *site, base string) {
	b.open(base + "submit")
	b.fill("textarea", `{"name": "of ann"}`)
	other := b.tab(base + "jobs")
	other.shows("Log out")
	other.press("Log out")
	b.shows("You are logged out.")
	other.enter(s, "oda")
	b.until("this tab is another's, too", "document.querySelector('header').innerText.includes('oda') && !document.querySelector('.login')")
	b.press("Submit")
	b.until("the form is there", "document.querySelector('textarea')")
	if got := b.text("document.querySelector('textarea').value"); strings.Contains(got, "of ann") {
		b.t.Errorf("another user is shown %q", got)
	}
}

// slow holds back what the network brings: the page says so, keeps what is typed, and
// goes on by itself.
func (b *browser) slow(s *site, address string) {
	n := newNetwork(b.t, address)
	base := "https://" + n.address + "/web/"
	b.open(base + "submit") // cookies go by host
	b.shows("Check")
	b.fill("textarea", `{"name": "typed", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "`+image+`", "command": "echo slowly"}}}`)
	b.shows("It would be taken")
	n.hold.Lock()
	b.do("submit", chromedp.Click("//main//button[normalize-space()='Submit' and not(@disabled)]", chromedp.NodeVisible))
	b.shows("An answer is late")
	b.accessible("a slow network")
	if got := b.text("document.querySelector('main button.main').disabled + document.querySelector('textarea').value"); !strings.HasPrefix(got, `true{"name": "typed"`) {
		b.t.Errorf("while the network is slow: %s", got)
	}
	n.hold.Unlock()
	b.until("nothing is late", "!document.querySelector('.banner')")
	b.shows("slowly") // the job of the button
	if got := strings.Count(s.must("gqueue", "-a", "-u", "oda", "--json"), `"name": "typed"`); got != 1 {
		b.t.Errorf("%d jobs came of one button", got)
	}
}

// network is a way to a controller that can be held up.
type network struct {
	address string
	hold    sync.RWMutex // while it is locked nothing is brought
}

func newNetwork(t *testing.T, to string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	n := &network{address: l.Addr().String()}
	go func() { // ends with the listener
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			go n.bring(from, there) // end with the connection
			go n.bring(there, from)
		}
	}()
	return n
}

func (n *network) bring(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	for buf := make([]byte, 32<<10); ; {
		got, err := from.Read(buf)
		n.hold.RLock()
		_, gone := to.Write(buf[:got])
		n.hold.RUnlock()
		if gone != nil || err != nil {
			return
		}
	}
}
