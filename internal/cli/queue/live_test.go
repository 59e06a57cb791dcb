package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestQueueWait(t *testing.T) {
	failed := clitest.Ended(job.Failed, job.ExitCode, new(3))
	b := clitest.Start(t, &clitest.Fake{Polls: func(n int, id string) *api.JobDetail {
		if id == "13" {
			return failed
		}
		return clitest.Ended(job.Finished, "", new(0))
	}})
	code := b.App.Finish(cli.Program{Name: "gqueue"}, (&Wait{IDs: []string{"12", "13"}}).Run(t.Context(), b.App))
	want := "job 12 (hello) FINISHED after 1:00\njob 12 (hello) FAILED (EXIT_CODE) with exit code 3 after 1:00\n"
	if code != exit.Failure || b.Out.String() != want {
		t.Errorf("exit %d, stdout %q", code, b.Out.String())
	}
}

func TestLiveAway(t *testing.T) {
	b := clitest.Start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	b.App.Sleep = func(ctx context.Context, _ time.Duration) error {
		if b.Slept++; b.Slept == 3 {
			cancel()
		}
		return ctx.Err()
	}
	if err := (&List{Interval: 1}).Run(ctx, b.App); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.Err.String(), "does not answer"); n != 1 || b.Out.String() != "" {
		t.Errorf("stderr %q, stdout %q", b.Err.String(), b.Out.String())
	}
}

func TestLive(t *testing.T) {
	for name, term := range map[string]cli.Terminal{"pipe": {}, "terminal": {Out: true, Err: true, Width: 90, Height: 4}, "odd": {Out: true, Width: 1, Height: 1}} {
		t.Run(name, func(t *testing.T) {
			f := &clitest.Fake{Jobs: clitest.SampleJobs()}
			b := clitest.Start(t, f)
			b.App.Term = term
			b.App.Measure = func() cli.Terminal { return term }
			b.App.Sleep = func(context.Context, time.Duration) error {
				if b.Slept++; b.Slept == 5 {
					return context.Canceled
				}
				return nil
			}
			if err := (&List{Interval: 1}).Run(t.Context(), b.App); err != nil {
				t.Fatal(err)
			}
			pictures := strings.Split(b.Out.String(), "2026-03-01 09:00:00")[1:]
			if len(pictures) != 5 {
				t.Fatalf("%d pictures: %q", len(pictures), b.Out.String())
			}
			f.Mu.Lock()
			defer f.Mu.Unlock()
			lists := 0
			for _, r := range f.Seen {
				if strings.HasPrefix(r, "GET /v1/jobs") {
					lists++
				}
			}
			if lists < 1 || lists > 2 { // at once, and perhaps when the stream of events begins
				t.Errorf("the list was fetched %d times: %v", lists, f.Seen)
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

// TestLiveOfUsers: whether a user without jobs is known is asked once, and not for each
// picture.
func TestLiveOfUsers(t *testing.T) {
	f := &clitest.Fake{Jobs: clitest.SampleJobs()}
	b := clitest.Start(t, f)
	b.App.Sleep = func(context.Context, time.Duration) error {
		if b.Slept++; b.Slept == 5 {
			return context.Canceled
		}
		return nil
	}
	if err := (&List{Users: []string{"ann", "nobody"}, Interval: 1}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	asked := 0
	for _, r := range f.Seen {
		if strings.HasPrefix(r, "GET /v1/jobs") && strings.Contains(r, "nobody") && strings.Contains(r, "limit=1") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times whether a user is known: %v", asked, f.Seen)
	}
}
