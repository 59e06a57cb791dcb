package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// ended is a job that ended in this way.
func ended(st job.State, reason job.Reason, code *int) *api.JobDetail {
	return &api.JobDetail{Version: 9, Job: api.Job{
		Number: 12, Name: "hello", State: st, Reason: string(reason), ExitCode: code,
		Started: now.Add(-time.Minute), Ended: now,
	}}
}

func at(version uint64, st job.State) *api.JobDetail {
	d := &api.JobDetail{Version: version, Job: api.Job{Number: 12, Name: "hello", State: st}}
	if st.Active() && st != job.Assigned && st != job.Starting {
		d.Started, d.Nodes = now.Add(-time.Minute), []string{"gpu1"}
		d.Attempts = []api.Attempt{{Attempt: 1}}
	}
	return d
}

func TestWaitExitCodes(t *testing.T) {
	tests := map[string]struct {
		end  *api.JobDetail
		want int
	}{
		"finished":      {ended(job.Finished, job.None, ptr(0)), 0},
		"finished-bare": {ended(job.Finished, job.None, nil), 0},
		"exit-3":        {ended(job.Failed, job.ExitCode, ptr(3)), 3},
		"signal":        {ended(job.Failed, job.Signal, ptr(143)), 143},
		"oom":           {ended(job.Failed, job.OOM, ptr(137)), 137},
		"retries":       {ended(job.Failed, job.BackoffLimit, ptr(2)), 2},
		"time-limit":    {ended(job.Failed, job.MaxRuntime, ptr(143)), 125},
		"node":          {ended(job.Failed, job.NodeFail, nil), 125},
		"image":         {ended(job.Failed, job.ImagePull, nil), 125},
		"cancelled":     {ended(job.Cancelled, job.ByUser, ptr(143)), 125},
		"halted":        {ended(job.Halted, job.None, nil), 125},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t, &fake{polls: func(n int, _ string) *api.JobDetail {
				return []*api.JobDetail{at(1, job.Queued), at(2, job.Running), tc.end}[min(n, 2)]
			}})
			if got := ExitCode(b.app.waitJob(t.Context(), "12")); got != tc.want {
				t.Errorf("exit %d, want %d; stderr %q", got, tc.want, b.err.String())
			}
		})
	}
}

// A job is read when there is news of it, and not before the stream of news
// stands, so that no change is missed.
func TestWatchListens(t *testing.T) {
	f := &fake{polls: func(n int, _ string) *api.JobDetail {
		return []*api.JobDetail{at(1, job.Queued), at(4, job.Running), ended(job.Finished, "", nil)}[n]
	}}
	b := start(t, f)
	if err := b.app.waitJob(t.Context(), "12"); err != nil {
		t.Fatal(err)
	}
	want := "GET /v1/events?job=12 GET /v1/jobs/12 GET /v1/jobs/12 GET /v1/jobs/12"
	if got := strings.Join(f.seen, " "); got != want || b.slept != 0 {
		t.Errorf("requests %s, want %s; %d pauses", got, want, b.slept)
	}
}

// The controller is killed while a client waits, stays away for some tries,
// and comes back: the client goes on and says so once.
func TestWaitSurvivesRestart(t *testing.T) {
	b := start(t, nil)
	var server atomic.Pointer[http.Server]
	up := func(polls func(n int, id string) *api.JobDetail) {
		l, err := net.Listen("unix", b.socket)
		if err != nil {
			t.Error(err)
			return
		}
		srv := &http.Server{Handler: &fake{polls: polls}}
		server.Store(srv)
		go srv.Serve(l) //nolint:errcheck // it ends with Close
	}
	up(func(n int, _ string) *api.JobDetail {
		if n == 0 {
			return at(1, job.Running)
		}
		server.Load().Close() // in the middle of the poll
		return nil
	})
	tries := 0
	b.app.Sleep = func(ctx context.Context, _ time.Duration) error {
		if tries++; tries == 3 {
			up(func(int, string) *api.JobDetail { return ended(job.Failed, job.ExitCode, ptr(7)) })
		}
		return ctx.Err()
	}
	t.Cleanup(func() { server.Load().Close() })
	if got := ExitCode(b.app.waitJob(t.Context(), "12")); got != 7 {
		t.Errorf("exit %d, want the job's 7", got)
	}
	for _, want := range []string{"does not answer", "connecting again until it is back", "connected again"} {
		if n := strings.Count(b.err.String(), want); n != 1 {
			t.Errorf("%q is said %d times:\n%s", want, n, b.err.String())
		}
	}
	if tries < 3 {
		t.Errorf("%d tries", tries)
	}
}

// A job is followed from the queue to its end: what a script sees.
func TestFollowPiped(t *testing.T) {
	queued := at(1, job.Queued)
	queued.Reason, queued.Position, queued.NumQueued, queued.EstStart = "Resources", 3, 9, now.Add(time.Hour)
	moved := at(2, job.Queued)
	moved.Reason, moved.Position = "Resources", 2 // only the position: not worth a line
	pulling := at(3, job.Starting)
	pulling.Nodes, pulling.Progress = []string{"gpu1"}, "pulling 12 of 80 MiB"
	b := start(t, &fake{
		polls: func(n int, _ string) *api.JobDetail {
			return []*api.JobDetail{queued, moved, pulling, at(4, job.Running), ended(job.Failed, job.ExitCode, ptr(3))}[min(n, 4)]
		},
		log: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("offset") == "" {
				io.WriteString(w, "raw \x1b[1mlog\x00\n")
			}
		},
	})
	code := b.app.fail(Program{Name: "gsubmit"}, b.app.followJob(t.Context(), "12"))
	b.golden(t, "follow-piped", code)
}

// The same on a terminal, where the status is one line that changes.
func TestFollowTerminal(t *testing.T) {
	queued := at(1, job.Queued)
	queued.Reason, queued.ReasonText, queued.Position, queued.NumQueued, queued.EstStart = "Resources", "waits for 2 GPUs", 3, 9, now.Add(time.Hour)
	pulling := at(3, job.Starting)
	pulling.Nodes, pulling.Progress = []string{"gpu1"}, "pulling 12 of 80 MiB\x1b[2J"
	b := start(t, &fake{
		polls: func(n int, _ string) *api.JobDetail {
			return []*api.JobDetail{queued, pulling, ended(job.Finished, job.None, ptr(0))}[min(n, 2)]
		},
		log: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("offset") == "" {
				io.WriteString(w, "hello\n")
			}
		},
	})
	b.app.Term = Terminal{Out: true, Err: true, Width: 60, Color: true}
	code := b.app.fail(Program{Name: "gsubmit"}, b.app.followJob(t.Context(), "12"))
	b.golden(t, "follow-terminal", code)
}

// A job that is cancelled in the queue has no log to show.
func TestFollowNeverRan(t *testing.T) {
	gone := at(2, job.Cancelled)
	gone.Reason, gone.ReasonText = "USER", "cancelled by ann"
	b := start(t, &fake{polls: func(n int, _ string) *api.JobDetail {
		return []*api.JobDetail{at(1, job.Queued), gone}[min(n, 1)]
	}})
	code := b.app.fail(Program{Name: "gsubmit"}, b.app.followJob(t.Context(), "12"))
	if want := "job 12 QUEUED\njob 12 (hello) CANCELLED (USER): cancelled by ann\n"; code != ExitNotProgram || b.err.String() != want {
		t.Errorf("exit %d, stderr %q", code, b.err.String())
	}
}

// Ctrl-C leaves the job alone and says what the user can do.
func TestFollowInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := start(t, &fake{
		polls: func(n int, _ string) *api.JobDetail { return at(uint64(n+1), job.Running) },
		log: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello\n")
			w.(http.Flusher).Flush()
			cancel()
			<-r.Context().Done()
		},
	})
	code := b.app.fail(Program{Name: "gsubmit"}, b.app.followJob(ctx, "12"))
	want := "job 12 is RUNNING and goes on. See it again: glog -f 12. End it: gcancel 12\n"
	if code != ExitInterrupted || b.err.String() != want {
		t.Errorf("exit %d, stderr %q", code, b.err.String())
	}
}

// logText is a job's log, in a controller that dies after each few bytes.
const logText = "0123456789abcdefghijklmnopqrstuvwxyz\n"

func brokenLog(opens *atomic.Int32, base int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		opens.Add(1)
		var offset, tail int64
		fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		fmt.Sscan(r.URL.Query().Get("tail"), &tail)
		if tail > 0 {
			offset = base
		}
		w.Header().Set(api.HeaderOffset, fmt.Sprint(offset))
		rest := logText[offset:]
		io.WriteString(w, rest[:min(len(rest), 10)])
		w.(http.Flusher).Flush()
		if len(rest) > 10 {
			panic(http.ErrAbortHandler)
		}
	}
}

// glog -f gives each byte once, whatever breaks.
func TestLogFollowResumes(t *testing.T) {
	tests := map[string]struct {
		o    LogOptions
		base int64
		want string
	}{
		"whole": {LogOptions{Follow: true}, 0, logText},
		"tail":  {LogOptions{Follow: true, Tail: 1}, 20, logText[20:]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var opens atomic.Int32
			b := start(t, &fake{log: brokenLog(&opens, tc.base), polls: func(int, string) *api.JobDetail {
				if opens.Load() < 3 {
					return at(1, job.Running)
				}
				return ended(job.Finished, "", nil)
			}})
			if err := b.app.Log(t.Context(), "12", tc.o); err != nil {
				t.Fatal(err)
			}
			if b.out.String() != tc.want {
				t.Errorf("got %q, want %q", b.out.String(), tc.want)
			}
		})
	}
}

// A job that is tried again has a new log, which is shown from its beginning.
func TestLogFollowsTheNextTry(t *testing.T) {
	var opens atomic.Int32
	b := start(t, &fake{
		log: func(w http.ResponseWriter, r *http.Request) {
			if n := opens.Add(1); n <= 2 {
				fmt.Fprintf(w, "try %d from %q\n", n, r.URL.Query().Get("offset"))
			}
		},
		polls: func(int, string) *api.JobDetail {
			d := at(1, job.Running)
			if opens.Load() > 0 {
				d.Attempts = append(d.Attempts, api.Attempt{Attempt: 2})
			}
			if opens.Load() > 1 {
				d.State = job.Finished
			}
			return d
		},
	})
	if err := b.app.Log(t.Context(), "12", LogOptions{Follow: true}); err != nil {
		t.Fatal(err)
	}
	if want := "try 1 from \"\"\ntry 2 from \"\"\n"; b.out.String() != want {
		t.Errorf("got %q, want %q", b.out.String(), want)
	}
}

func TestLogErrors(t *testing.T) {
	b := start(t, &fake{log: func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, &api.Error{Status: 409, Code: api.CodeConflict, Message: "job 12 is QUEUED: there is no log yet"})
	}})
	if err := b.app.Log(t.Context(), "12", LogOptions{}); ExitCode(err) != ExitFailure || !strings.Contains(err.Error(), "no log yet") {
		t.Errorf("got %v", err)
	}
}

func TestQueueWait(t *testing.T) {
	failed := ended(job.Failed, job.ExitCode, ptr(3))
	b := start(t, &fake{polls: func(n int, id string) *api.JobDetail {
		if id == "13" {
			return failed
		}
		return ended(job.Finished, "", ptr(0))
	}})
	code := b.app.fail(Program{Name: "gqueue"}, b.app.WaitFor(t.Context(), []string{"12", "13"}))
	want := "job 12 (hello) FINISHED after 1:00\njob 12 (hello) FAILED (EXIT_CODE) with exit code 3 after 1:00\n"
	if code != ExitFailure || b.out.String() != want {
		t.Errorf("exit %d, stdout %q", code, b.out.String())
	}
}

// What is shown live outlives a controller that is away, and says so once.
func TestLiveAway(t *testing.T) {
	b := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	b.app.Sleep = func(ctx context.Context, _ time.Duration) error {
		if b.slept++; b.slept == 3 {
			cancel()
		}
		return ctx.Err()
	}
	if err := b.app.Queue(ctx, QueueOptions{Interval: time.Second}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.err.String(), "does not answer"); n != 1 || b.out.String() != "" {
		t.Errorf("stderr %q, stdout %q", b.err.String(), b.out.String())
	}
}

// A list is fetched again when something has changed, not at each picture; in a
// pipe it has no codes for terminals, on one it is not higher than the window.
func TestLive(t *testing.T) {
	for name, term := range map[string]Terminal{"pipe": {}, "terminal": {Out: true, Err: true, Width: 90, Height: 4}, "odd": {Out: true, Width: 1, Height: 1}} {
		t.Run(name, func(t *testing.T) {
			f := &fake{jobs: sampleJobs()}
			b := start(t, f)
			b.app.Term = term
			b.app.Measure = func() Terminal { return term }
			b.app.Sleep = func(context.Context, time.Duration) error {
				if b.slept++; b.slept == 5 {
					return context.Canceled
				}
				return nil
			}
			if err := b.app.Queue(t.Context(), QueueOptions{Interval: time.Second}); err != nil {
				t.Fatal(err)
			}
			pictures := strings.Split(b.out.String(), "2026-03-01 09:00:00")[1:]
			if len(pictures) != 5 {
				t.Fatalf("%d pictures: %q", len(pictures), b.out.String())
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			lists := 0
			for _, r := range f.seen {
				if strings.HasPrefix(r, "GET /v1/jobs") {
					lists++
				}
			}
			if lists < 1 || lists > 2 { // at once, and perhaps when the stream of events begins
				t.Errorf("the list was fetched %d times: %v", lists, f.seen)
			}
			for _, p := range pictures {
				switch escapes := strings.Contains(p, "\x1b"); {
				case escapes != term.Out:
					t.Errorf("codes for terminals: %v in %q", escapes, p)
				case name == "terminal" && (strings.Count(p, "\n") != 3 || !strings.Contains(p, "more lines")):
					t.Errorf("it does not fit the window: %q", p)
				}
			}
		})
	}
}

// All ranks' lines come whole, each behind its rank's number.
func TestLogAll(t *testing.T) {
	logs := func(w http.ResponseWriter, r *http.Request) {
		rank := cmp.Or(r.URL.Query().Get("rank"), "0")
		if r.URL.Query().Get("offset") == "" {
			fmt.Fprintf(w, "one of %s\ntwo\nrest", rank)
		}
	}
	done := ended(job.Finished, "", ptr(0))
	done.Attempts = []api.Attempt{{Attempt: 1, Ranks: make([]api.Rank, 11)}}
	for _, follow := range []bool{false, true} {
		b := start(t, &fake{log: logs, polls: func(int, string) *api.JobDetail { return done }})
		if err := b.app.Log(t.Context(), "12", LogOptions{All: true, Follow: follow}); err != nil {
			t.Fatal(err)
		}
		got := strings.SplitAfter(b.out.String(), "\n")
		want := " 0: one of 0\n 0: two\n 0: rest\n"
		if follow {
			slices.SortStableFunc(got, func(x, y string) int { return strings.Compare(x[:min(2, len(x))], y[:min(2, len(y))]) })
			got = got[1:] // the empty one
		}
		text := strings.Join(got, "")
		if !strings.HasPrefix(text, want) || !strings.Contains(text, "10: one of 10\n10: two\n10: rest\n") || len(got) < 33 {
			t.Errorf("follow %v: %q", follow, text)
		}
	}
}
