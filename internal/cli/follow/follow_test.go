package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestWaitExitCodes(t *testing.T) {
	tests := map[string]struct {
		end  *api.JobDetail
		want int
	}{
		"finished":      {clitest.Ended(job.Finished, job.None, new(0)), 0},
		"finished-bare": {clitest.Ended(job.Finished, job.None, nil), 0},
		"exit-3":        {clitest.Ended(job.Failed, job.ExitCode, new(3)), 3},
		"signal":        {clitest.Ended(job.Failed, job.Signal, new(143)), 143},
		"oom":           {clitest.Ended(job.Failed, job.OOM, new(137)), 137},
		"retries":       {clitest.Ended(job.Failed, job.BackoffLimit, new(2)), 2},
		"time-limit":    {clitest.Ended(job.Failed, job.MaxRuntime, new(143)), 125},
		"node":          {clitest.Ended(job.Failed, job.NodeFail, nil), 125},
		"image":         {clitest.Ended(job.Failed, job.ImagePull, nil), 125},
		"cancelled":     {clitest.Ended(job.Cancelled, job.ByUser, new(143)), 125},
		"halted":        {clitest.Ended(job.Halted, job.None, nil), 125},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, &clitest.Fake{Polls: func(n int, _ string) *api.JobDetail {
				return []*api.JobDetail{clitest.At(1, job.Queued), clitest.At(2, job.Running), tc.end}[min(n, 2)]
			}})
			if got := exit.Code(Wait(t.Context(), b.App, "12")); got != tc.want {
				t.Errorf("exit %d, want %d; stderr %q", got, tc.want, b.Err.String())
			}
		})
	}
}

func TestWatchListens(t *testing.T) {
	f := &clitest.Fake{Polls: func(n int, _ string) *api.JobDetail {
		return []*api.JobDetail{clitest.At(1, job.Queued), clitest.At(4, job.Running), clitest.Ended(job.Finished, "", nil)}[n]
	}}
	b := clitest.Start(t, f)
	if err := Wait(t.Context(), b.App, "12"); err != nil {
		t.Fatal(err)
	}
	want := "GET /v1/events?job=12 GET /v1/jobs/12 GET /v1/jobs/12 GET /v1/jobs/12"
	if got := strings.Join(f.Seen, " "); got != want || b.Slept != 0 {
		t.Errorf("requests %s, want %s; %d pauses", got, want, b.Slept)
	}
}

func TestWaitSurvivesRestart(t *testing.T) {
	b := clitest.Start(t, nil)
	var server atomic.Pointer[http.Server]
	up := func(polls func(n int, id string) *api.JobDetail) {
		l, err := net.Listen("unix", b.Socket)
		if err != nil {
			t.Error(err)
			return
		}
		srv := &http.Server{Handler: &clitest.Fake{Polls: polls}}
		server.Store(srv)
		go srv.Serve(l) //nolint:errcheck // it ends with Close
	}
	up(func(n int, _ string) *api.JobDetail {
		if n == 0 {
			return clitest.At(1, job.Running)
		}
		server.Load().Close() // in the middle of the poll
		return nil
	})
	tries := 0
	b.App.Sleep = func(ctx context.Context, _ time.Duration) error {
		if tries++; tries == 3 {
			up(func(int, string) *api.JobDetail { return clitest.Ended(job.Failed, job.ExitCode, new(7)) })
		}
		return ctx.Err()
	}
	t.Cleanup(func() { server.Load().Close() })
	if got := exit.Code(Wait(t.Context(), b.App, "12")); got != 7 {
		t.Errorf("exit %d, want the job's 7", got)
	}
	for _, want := range []string{"does not answer", "connecting again until it is back", "connected again"} {
		if n := strings.Count(b.Err.String(), want); n != 1 {
			t.Errorf("%q is said %d times:\n%s", want, n, b.Err.String())
		}
	}
	if tries < 3 {
		t.Errorf("%d tries", tries)
	}
}

func TestFollowPiped(t *testing.T) {
	queued := clitest.At(1, job.Queued)
	queued.Reason, queued.Position, queued.NumQueued, queued.EstStart = "Resources", 3, 9, clitest.Now.Add(time.Hour)
	moved := clitest.At(2, job.Queued)
	moved.Reason, moved.Position = "Resources", 2 // only the position: not worth a line
	pulling := clitest.At(3, job.Starting)
	pulling.Nodes, pulling.Progress = []string{"gpu1"}, "pulling 12 of 80 MiB"
	b := clitest.Start(t, &clitest.Fake{
		Polls: func(n int, _ string) *api.JobDetail {
			return []*api.JobDetail{queued, moved, pulling, clitest.At(4, job.Running), clitest.Ended(job.Failed, job.ExitCode, new(3))}[min(n, 4)]
		},
		Log: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("offset") == "" {
				io.WriteString(w, "raw \x1b[1mlog\x00\n")
			}
		},
	})
	code := b.App.Finish(cli.Program{Name: "gsubmit"}, Job(t.Context(), b.App, "12"))
	b.Golden(t, "follow-piped", code)
}

func TestFollowTerminal(t *testing.T) {
	queued := clitest.At(1, job.Queued)
	queued.Reason, queued.ReasonText, queued.Position, queued.NumQueued, queued.EstStart = "Resources", "waits for 2 GPUs", 3, 9, clitest.Now.Add(time.Hour)
	pulling := clitest.At(3, job.Starting)
	pulling.Nodes, pulling.Progress = []string{"gpu1"}, "pulling 12 of 80 MiB\x1b[2J"
	b := clitest.Start(t, &clitest.Fake{
		Polls: func(n int, _ string) *api.JobDetail {
			return []*api.JobDetail{queued, pulling, clitest.Ended(job.Finished, job.None, new(0))}[min(n, 2)]
		},
		Log: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("offset") == "" {
				io.WriteString(w, "hello\n")
			}
		},
	})
	b.App.Term = cli.Terminal{Out: true, Err: true, Width: 60, Color: true}
	code := b.App.Finish(cli.Program{Name: "gsubmit"}, Job(t.Context(), b.App, "12"))
	b.Golden(t, "follow-terminal", code)
}

// TestFollowDumb: a terminal that takes no escape sequences gets none.
func TestFollowDumb(t *testing.T) {
	b := clitest.Start(t, &clitest.Fake{
		Polls: func(n int, _ string) *api.JobDetail {
			return []*api.JobDetail{clitest.At(1, job.Queued), clitest.Ended(job.Finished, job.None, new(0))}[min(n, 1)]
		},
		Log: func(http.ResponseWriter, *http.Request) {},
	})
	b.App.Term = cli.Terminal{Out: true, Err: true, Width: 60, Dumb: true}
	b.App.Finish(cli.Program{Name: "gsubmit"}, Job(t.Context(), b.App, "12"))
	if text := b.Out.String() + b.Err.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "QUEUED") {
		t.Errorf("said %q", text)
	}
}

func TestFollowNeverRan(t *testing.T) {
	gone := clitest.At(2, job.Cancelled)
	gone.Reason, gone.ReasonText = "USER", "cancelled by ann"
	b := clitest.Start(t, &clitest.Fake{Polls: func(n int, _ string) *api.JobDetail {
		return []*api.JobDetail{clitest.At(1, job.Queued), gone}[min(n, 1)]
	}})
	code := b.App.Finish(cli.Program{Name: "gsubmit"}, Job(t.Context(), b.App, "12"))
	if want := "job 12 QUEUED\njob 12 (hello) CANCELLED (USER): cancelled by ann\n"; code != exit.NotProgram || b.Err.String() != want {
		t.Errorf("exit %d, stderr %q", code, b.Err.String())
	}
}

func TestFollowInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := clitest.Start(t, &clitest.Fake{
		Polls: func(n int, _ string) *api.JobDetail { return clitest.At(uint64(n+1), job.Running) },
		Log: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello\n")
			w.(http.Flusher).Flush()
			cancel()
			<-r.Context().Done()
		},
	})
	code := b.App.Finish(cli.Program{Name: "gsubmit"}, Job(ctx, b.App, "12"))
	want := "job 12 is RUNNING and goes on. See it again: glog -f 12. End it: gcancel 12\n"
	if code != exit.Interrupted || b.Err.String() != want {
		t.Errorf("exit %d, stderr %q", code, b.Err.String())
	}
}

func TestFollowLeavesAnEndlessLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		polls := 0
		transport := clitest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/log") {
				out, in := io.Pipe()
				go io.WriteString(in, "hello\n") // ended by the reader's close
				context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: 200, Body: out}, nil
			}
			if r.URL.Path == api.PathEvents {
				out, in := io.Pipe()
				go io.WriteString(in, "id: 1\nevent: ping\ndata: {}\n\n") // ended by the reader's close
				context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: 200, Body: out}, nil
			}
			d := clitest.Ended(job.Failed, job.NodeFail, nil)
			if polls++; polls == 1 {
				d = clitest.At(1, job.Running)
			}
			body, err := json.Marshal(d)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(body))}, err
		})
		var out, errOut bytes.Buffer
		app := &cli.App{Out: &out, Err: &errOut, Now: time.Now, Sleep: client.Sleep,
			Client: &client.Client{Address: "/none", Transport: transport}}
		code := exit.Code(Job(t.Context(), app, "12"))
		if code != exit.NotProgram || out.String() != "hello\n" || !strings.Contains(errOut.String(), "the log did not end with the job") {
			t.Errorf("exit %d, stdout %q, stderr %q", code, out.String(), errOut.String())
		}
		if waited := time.Since(begun); waited != drain {
			t.Errorf("waited %v, want %v", waited, drain)
		}
	})
}

func TestBar(t *testing.T) {
	tests := map[string]string{
		"pulling 12 of 80 MiB":                    "[###                 ] 15%",
		"pulling 512 MiB of 2.0 GiB":              "[#####               ] 25%",
		"pulling 0 B of 5 MiB":                    "[                    ] 0%",
		"input 2 of 5: 3 MiB of 3 MiB":            "[####################] 100%",
		"unpacking, 3 of 4 layers":                "[###############     ] 75%",
		"pulling 9 of 0 MiB":                      "",
		"pulling 90 of 80 MiB":                    "[####################] 100%",
		"asking the registry":                     "",
		"":                                        "",
		"pulling 1.2.3 of 5":                      "",
		"pulling 99999999999999999999 YB of 1 MB": "",
	}
	for text, want := range tests {
		if got := bar(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
