package ctld

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestNotify: whom a job names is told, after failures and over a restart of the
// controller, at no address that the site does not allow; what is not taken is shown.
func TestNotify(t *testing.T) {
	got, up := make(chan string, 100), make(chan bool, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		select {
		case yes := <-up:
			up <- yes
			got <- r.Header.Get("Content-Type") + " " + string(text)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer receiver.Close()
	s := newSite(t, func(c *site.Config) {
		c.Notify = site.Notify{Hosts: []string{strings.TrimPrefix(receiver.URL, "http://")}, PlainHTTP: true}
	})
	s.server.hooks.Pause = time.Millisecond
	doc := fmt.Sprintf(`{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}},
		"gbatch":{"notify":[{"to":"%s/secret","format":"text","on":["begin","fail"]},"http://127.0.0.1:1/inside"]}}`, receiver.URL)
	s.submit(&api.SubmitRequest{Job: []byte(doc)}, "")
	n := s.node("n1")
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	n.report(id, node.PhaseEnded, &node.Exit{Code: 3, StartedMS: 1, EndedMS: 2})
	untold := func(n int) (list []api.Untold) {
		t.Helper()
		waitFor(t, fmt.Sprintf("%d messages are not taken", n), func() bool {
			list = s.job("1").Untold
			return len(list) == n
		})
		return list
	}
	for _, u := range untold(3) {
		reached := strings.Contains(u.Error, "it answers 503")
		if reached != strings.HasPrefix(u.To, receiver.URL) || !reached && !strings.HasPrefix(u.Error, "it cannot be reached: its name is not known, nothing answers there within ") || strings.Contains(u.To+u.Error, "/secret") || u.Tries == 0 {
			t.Errorf("shown as not told: %+v", u)
		}
	}
	s.stop()
	up <- true
	s.start()
	all := <-got + "\n" + <-got
	for _, want := range []string{"text/plain; charset=utf-8 Job 1 (train) of ", " runs", " is FAILED"} {
		if !strings.Contains(all, want) {
			t.Errorf("the messages lack %q:\n%s", want, all)
		}
	}
	untold(1)
}

// TestNotifyLimit: who asks for it is told that a part of the time limit is used, and that
// the job was ended by it.
func TestNotifyLimit(t *testing.T) {
	got := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- string(text)
	}))
	defer receiver.Close()
	s := newSite(t, func(c *site.Config) {
		c.Notify = site.Notify{Hosts: []string{strings.TrimPrefix(receiver.URL, "http://")}, PlainHTTP: true}
	})
	s.submit(&api.SubmitRequest{Job: fmt.Appendf(nil, `{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},
		"scheduling":{"maxDuration":"1 hour"}},"gbatch":{"notify":[{"to":"%s/x","format":"text","on":["limit-50","limit"]}]}}`, receiver.URL)}, "")
	n := s.node("n1")
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	if r, err := s.Action(t.Context(), "update", &api.ActionRequest{IDs: []string{"1"}, Change: &api.JobChange{LimitS: 1}}); err != nil || r.Results[0].Error != nil {
		t.Fatalf("a shorter limit: %+v, %v", r, err)
	}
	if text := <-got; !strings.HasSuffix(text, " has used 50 % of its time limit of 1 second") {
		t.Errorf("in the middle of its time: %s", text)
	}
	n.report(id, node.PhaseEnded, &node.Exit{Signal: 15, Reason: job.MaxRuntime, Message: "its time was over", StartedMS: 1, EndedMS: 2})
	if text := <-got; !strings.Contains(text, " is FAILED MAX_RUNTIME: ") {
		t.Errorf("at its end: %s", text)
	}
	events := s.job("1").Events
	if !slices.ContainsFunc(events, func(e api.Event) bool { return e.Message == "50 % of its time limit of 1 second is used" }) {
		t.Errorf("its timeline does not say it: %+v", events)
	}
}

// TestNotifyNotes: who names an address that this site does not allow hears it at once.
func TestNotifyNotes(t *testing.T) {
	s := newSite(t, nil)
	r := s.submit(&api.SubmitRequest{Job: []byte(`{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}},
		"gbatch":{"notify":["https://chat.example.org/x","http://chat.example.org/y"]}}`)}, "")
	if len(r.Notes) != 1 || r.Notes[0].Path != "gbatch.notify[1].to" || !strings.Contains(r.Notes[0].Message, "https:// alone") {
		t.Errorf("notes %+v", r.Notes)
	}
}

// TestNotifyGivenUp: what an address has not taken for too long is given up, and its
// job's timeline and the audit log have that, over restarts.
func TestNotifyGivenUp(t *testing.T) {
	var asked atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	s := newSite(t, func(c *site.Config) {
		c.Notify = site.Notify{Hosts: []string{strings.TrimPrefix(receiver.URL, "http://")}, PlainHTTP: true}
	})
	s.server.hooks.Pause, s.server.hooks.Age = time.Millisecond, 0
	s.submit(&api.SubmitRequest{Job: fmt.Appendf(nil, `{"name":"train","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}},
		"gbatch":{"notify":["%s/secret"]}}`, receiver.URL)}, "")
	n := s.node("n1")
	n.sync(nil)
	n.report(job.RankID{Job: 1, Attempt: 1}, node.PhaseEnded, &node.Exit{Code: 3, StartedMS: 1, EndedMS: 2})
	want := receiver.URL + `/... was not told of "end", and it is given up: it answers 503 Service Unavailable`
	waitFor(t, "the timeline has what was given up", func() bool {
		d := s.job("1")
		last := d.Events[len(d.Events)-1]
		return len(d.Untold) == 0 && last.State == job.Failed && strings.HasSuffix(last.Message, want)
	})
	times := asked.Load()
	s.stop()
	s.start()
	list, err := s.Audit(t.Context(), client.AuditFilter{Object: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Entries {
		if e.User == "gctld" {
			got = append(got, e.Change)
		}
	}
	if diff := cmp.Diff([]string{want}, got); diff != "" {
		t.Errorf("in the audit log (-want +got):\n%s", diff)
	}
	if asked.Load() != times {
		t.Error("what was given up is tried again")
	}
}
