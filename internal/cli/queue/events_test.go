package queue

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// brokenEvents is a controller whose stream breaks after each part.
func brokenEvents(parts []string, asked *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := len(*asked)
		*asked = append(*asked, r.Header.Get("Last-Event-ID"))
		io.WriteString(w, parts[min(n, len(parts)-1)])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Events go on after the last one, and a job's timeline is printed once,
// whatever breaks; the end of the job is the end.
func TestFollowEvents(t *testing.T) {
	line := func(n int, state job.State) api.Event {
		return api.Event{Time: clitest.Now.Add(time.Duration(n) * time.Second), State: state, Message: fmt.Sprintf("line %d\x1b[2J", n)}
	}
	d := clitest.At(3, job.Running)
	d.Events = []api.Event{line(1, job.Queued), line(2, ""), line(3, job.Running)}
	event := func(id, version, n int, st job.State) string {
		return fmt.Sprintf("id: %d\nevent: job\ndata: {\"number\":12,\"name\":\"hello\",\"state\":%q,\"version\":%d,\"lines\":[{\"time\":%q,\"message\":\"line %d\\u001b[2J\",\"state\":%q}]}\n\n",
			id, st, version, line(n, "").Time.Format(time.RFC3339), n, st)
	}
	ping, reset := "id: 7\nevent: ping\ndata: {}\n\n", "id: 900\nevent: reset\ndata: {}\n\n"
	var asked []string
	stream := brokenEvents([]string{
		ping + event(8, 3, 3, job.Running) + event(9, 4, 4, job.Halting), // 3 is in the timeline that was read
		ping + reset, // 5 was missed
		ping + event(902, 6, 6, job.Finished),
	}, &asked)
	reads := 0
	b := clitest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == api.PathEvents {
			stream(w, r)
			return
		}
		if reads++; reads == 3 {
			d.Version, d.Events = 5, append(d.Events, line(4, job.Halting), line(5, ""))
		}
		if reads == 5 {
			d.State, d.Version, d.Events = job.Finished, 6, append(d.Events, line(6, job.Finished))
		}
		clitest.Answer(w, d)
	}))
	if err := (&Events{IDs: []string{"12"}, Follow: true}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i, st := range []string{"QUEUED: ", "", "RUNNING: ", "HALTING: ", "", "FINISHED: "} {
		fmt.Fprintf(&want, "2026-03-01T09:00:0%d  12 (hello)  %sline %d\\x1b[2J\n", i+1, st, i+1)
	}
	if b.Out.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s\nstderr %s", b.Out.String(), want.String(), b.Err.String())
	}
	if got := strings.Join(asked, " "); got != " 9 900" {
		t.Errorf("it went on after %q", got)
	}
}

// Others' jobs and nodes have a line, too, and programs one object in each.
func TestEventLines(t *testing.T) {
	parts := []string{"id: 7\nevent: ping\ndata: {}\n\n" +
		"id: 8\nevent: job\ndata: {\"number\":16,\"name\":\"job-a280f7\",\"state\":\"RUNNING\",\"version\":2,\"private\":true}\n\n" +
		"id: 9\nevent: node\ndata: {\"name\":\"gpu1\",\"state\":\"drained\",\"reason\":\"ann: fan\"}\n\n" +
		"id: 10\nevent: later\ndata: {\"new\":1}\n\n"}
	want := map[bool]string{
		false: "2026-03-01T09:00:00  16 (job-a280f7)  RUNNING\n2026-03-01T09:00:00  node gpu1  drained: ann: fan\n",
		true: `{"schema":1,"job":{"id":"","number":16,"uuid":"","name":"job-a280f7","user":"","project":"","state":"RUNNING","submitted":"0001-01-01T00:00:00Z","private":true,"version":2}}` + "\n" +
			`{"schema":1,"node":{"name":"gpu1","state":"drained","reason":"ann: fan"}}` + "\n",
	}
	for asJSON, text := range want {
		var asked []string
		b := clitest.Start(t, brokenEvents(parts, &asked))
		b.App.Output.JSON = asJSON
		b.App.Sleep = nil
		p := &eventPrinter{app: b.App, seen: map[job.Number]uint64{}, lines: map[job.Number]int{}}
		if err := p.listen(t.Context(), client.EventFilter{}); exit.Code(err) != exit.Unreachable {
			t.Errorf("it ended with %v", err)
		}
		if b.Out.String() != text {
			t.Errorf("got\n%s\nwant\n%s", b.Out.String(), text)
		}
	}
}
