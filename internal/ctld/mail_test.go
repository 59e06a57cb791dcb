package ctld

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// relay is a mail server that refuses the first mails and keeps the others.
func relay(t *testing.T, refuse int) (addr string, got chan string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	got = make(chan string, 100)
	go func() { // ends when the listener is closed
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			refuse--
			serveMail(c, refuse >= 0, got)
		}
	}()
	return ln.Addr().String(), got
}

func serveMail(c net.Conn, refuse bool, got chan string) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewScanner(c)
	say := func(line string) { fmt.Fprintf(c, "%s\r\n", line) }
	say("220 relay")
	var text strings.Builder
	for in.Scan() {
		switch word := strings.ToUpper(strings.Fields(in.Text() + " ?")[0]); word {
		case "DATA":
			say("354 go on")
			for in.Scan() && in.Text() != "." {
				text.WriteString(in.Text() + "\n")
			}
			say("250 taken")
			got <- text.String()
		case "RCPT":
			if refuse {
				say("451 later")
				continue
			}
			text.WriteString(in.Text() + "\n")
			say("250 ok")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// TestMail: who is named hears of what they asked for, after a first try that
// was refused, and nothing waits for it; a site without mail says so.
func TestMail(t *testing.T) {
	doc := `{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},
		"extra":{"emailOnQueue":"q@example.org","emailOnRun":["r@example.org","r2@example.org"],"emailOnEnd":"e@example.org"}}}`
	addr, got := relay(t, 1)
	s := newSite(t, func(c *site.Config) { c.Mail = &site.Mail{SMTP: addr, From: "gbatch@example.org"} })
	s.server.hooks.Pause = time.Millisecond
	if r := s.submit(&api.SubmitRequest{Job: []byte(doc)}, ""); len(r.Notes) > 0 {
		t.Errorf("notes %v", r.Notes)
	}
	n := s.node("n1")
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	n.report(id, node.PhaseEnded, &node.Exit{Code: 137, Reason: job.OOM, Message: "killed at 8.0 GiB of 8 GiB", StartedMS: 1, EndedMS: 2})
	mails := map[string]string{} // by who gets them: one that is refused comes after others
	for range 4 {
		select {
		case text := <-got:
			_, to, _ := strings.Cut(text, "<")
			to, _, _ = strings.Cut(to, ">")
			mails[to] = text
		case <-time.After(20 * time.Second):
			t.Fatalf("mails %v, and no more", mails)
		}
	}
	for to, want := range map[string][]string{
		"q@example.org":  {"Subject: job 1 (train) is queued"},
		"r@example.org":  {"Subject: job 1 (train) runs"},
		"r2@example.org": {"Subject: job 1 (train) runs"},
		"e@example.org":  {"Subject: job 1 (train) is FAILED OOM", "killed at 8.0 GiB of 8 GiB"},
	} {
		for _, w := range want {
			if !strings.Contains(mails[to], w) {
				t.Errorf("the mail to %s lacks %q:\n%s", to, w, mails[to])
			}
		}
	}
	other := newSite(t, nil)
	if r := other.submit(&api.SubmitRequest{Job: []byte(doc)}, ""); len(r.Notes) != 1 || !strings.Contains(r.Notes[0].Message, "sends no mail") {
		t.Errorf("without mail: notes %v", r.Notes)
	}
}

// TestMailsOfADay: one user's jobs send so many mails in a day as the site lets them,
// whoever they are for; also one that the mail server refuses counts. What is above that
// is shown with the bound, and counted.
func TestMailsOfADay(t *testing.T) {
	addr, got := relay(t, 1)
	s := newSite(t, func(c *site.Config) {
		c.Mail = &site.Mail{SMTP: addr, From: "gbatch@example.org"}
		c.Limits.PerUser.Mails = 3
	})
	s.server.hooks.Pause = time.Millisecond
	s.submit(&api.SubmitRequest{Job: []byte(`{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},
		"extra":{"emailOnQueue":["a@example.org","b@example.org","c@example.org","d@example.org"]}}}`)}, "")
	waitFor(t, "what is above the bound is shown", func() bool {
		list := s.job("1").Untold
		return len(list) == 2 && strings.Contains(list[0].Error, "had 3 mails sent within a day (limits.perUser.mailsPerDay)") && list[0].Error[:20] == list[1].Error[:20]
	})
	if len(got) != 2 {
		t.Errorf("%d mails came, want 2: of three tries the first was refused", len(got))
	}
	counts := fmt.Sprint(series(s.scrape(), "gctld_mails_total"))
	for _, want := range []string{`gctld_mails_total{outcome="sent"} 2`, `gctld_mails_total{outcome="failed"} 1`, `gctld_mails_total{outcome="over_limit"} `} {
		if !strings.Contains(counts, want) {
			t.Errorf("counted are %s, want %s", counts, want)
		}
	}
}
