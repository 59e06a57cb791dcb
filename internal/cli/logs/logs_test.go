package logs

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

func TestMain(m *testing.M) { clitest.Main(m) }

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

func TestLogFollowResumes(t *testing.T) {
	tests := map[string]struct {
		o    Log
		base int64
		want string
	}{
		"whole": {Log{ID: "12", Follow: true}, 0, logText},
		"tail":  {Log{ID: "12", Follow: true, Tail: 1}, 20, logText[20:]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var opens atomic.Int32
			b := clitest.Start(t, &clitest.Fake{Log: brokenLog(&opens, tc.base), Polls: func(int, string) *api.JobDetail {
				if opens.Load() < 3 {
					return clitest.At(1, job.Running)
				}
				return clitest.Ended(job.Finished, "", nil)
			}})
			if err := tc.o.Run(t.Context(), b.App); err != nil {
				t.Fatal(err)
			}
			if b.Out.String() != tc.want {
				t.Errorf("got %q, want %q", b.Out.String(), tc.want)
			}
		})
	}
}

func TestLogFollowsTheNextTry(t *testing.T) {
	var opens atomic.Int32
	b := clitest.Start(t, &clitest.Fake{
		Log: func(w http.ResponseWriter, r *http.Request) {
			if n := opens.Add(1); n <= 2 {
				fmt.Fprintf(w, "try %d from %q\n", n, r.URL.Query().Get("offset"))
			}
		},
		Polls: func(int, string) *api.JobDetail {
			d := clitest.At(1, job.Running)
			if opens.Load() > 0 {
				d.Attempts = append(d.Attempts, api.Attempt{Attempt: 2})
			}
			if opens.Load() > 1 {
				d.State = job.Finished
			}
			return d
		},
	})
	if err := (&Log{ID: "12", Follow: true}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	if want := "try 1 from \"\"\ntry 2 from \"\"\n"; b.Out.String() != want {
		t.Errorf("got %q, want %q", b.Out.String(), want)
	}
}

func TestLogErrors(t *testing.T) {
	b := clitest.Start(t, &clitest.Fake{Log: func(w http.ResponseWriter, _ *http.Request) {
		clitest.Refuse(w, api.Errorf(api.CodeConflict, "job 12 is QUEUED: there is no log yet"))
	}})
	if err := (&Log{ID: "12"}).Run(t.Context(), b.App); exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), "no log yet") {
		t.Errorf("got %v", err)
	}
}

func TestLogAll(t *testing.T) {
	logs := func(w http.ResponseWriter, r *http.Request) {
		rank := cmp.Or(r.URL.Query().Get("rank"), "0")
		if r.URL.Query().Get("offset") == "" {
			fmt.Fprintf(w, "one of %s\ntwo\nrest", rank)
		}
	}
	done := clitest.Ended(job.Finished, "", new(0))
	done.Attempts = []api.Attempt{{Attempt: 1, Ranks: make([]api.Rank, 11)}}
	for _, follow := range []bool{false, true} {
		b := clitest.Start(t, &clitest.Fake{Log: logs, Polls: func(int, string) *api.JobDetail { return done }})
		if err := (&Log{ID: "12", All: true, Follow: follow}).Run(t.Context(), b.App); err != nil {
			t.Fatal(err)
		}
		got := strings.SplitAfter(b.Out.String(), "\n")
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
