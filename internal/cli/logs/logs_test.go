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
	"gbatch/internal/node"
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

// tries is a job whose tries but the last have ended.
func tries(st job.State, n uint32) *api.JobDetail {
	d := clitest.At(1, st)
	d.Attempts = nil
	for i := range n {
		at := api.Attempt{Attempt: i + 1, Ranks: []api.Rank{{Phase: string(node.PhaseRunning)}}}
		if i+1 < n || !st.Active() {
			at.End, at.Ranks[0].Phase = clitest.Now, string(node.PhaseEnded)
			at.Ranks[0].Exit = &node.Exit{Code: int(i + 1), StartedMS: 1, Message: fmt.Sprintf("exit code %d", i+1)}
		}
		d.Attempts = append(d.Attempts, at)
	}
	return d
}

// TestLogFollowsTries: each try's log is followed to its end, however soon the
// next one begins, from the one that runs or from the one that is asked for.
func TestLogFollowsTries(t *testing.T) {
	const one, two, three = "try 1 from \"\"\n", "try 2 from \"\"\n", "try 3 from \"\"\n"
	tests := map[string]struct {
		o    Log
		want string
		said []string
	}{
		"from-the-last": {Log{ID: "12", Follow: true}, two + three, []string{"try 2 of job 12 ended: exit code 2"}},
		"from-one":      {Log{ID: "12", Follow: true, Try: 1}, one + two + three, []string{"try 1 of job 12 ended: exit code 1", "try 2 of job 12 ended: exit code 2"}},
		"one-alone":     {Log{ID: "12", Try: 1}, one, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			opened := map[string]bool{}
			b := clitest.Start(t, &clitest.Fake{
				Log: func(w http.ResponseWriter, r *http.Request) {
					if q := r.URL.Query(); q.Get("offset") == "" {
						opened[q.Get("attempt")] = true
						fmt.Fprintf(w, "try %s from %q\n", q.Get("attempt"), q.Get("offset"))
					}
				},
				Polls: func(n int, _ string) *api.JobDetail {
					switch {
					case opened["3"]:
						return tries(job.Failed, 3)
					case opened["2"]:
						return tries(job.Running, 3)
					case n > 1 && n < 5: // between two tries
						return tries(job.Queued, 2)
					}
					return tries(job.Running, 2)
				},
			})
			if err := tc.o.Run(t.Context(), b.App); err != nil {
				t.Fatal(err)
			}
			if b.Out.String() != tc.want {
				t.Errorf("got %q, want %q", b.Out.String(), tc.want)
			}
			if said := strings.Split(strings.TrimSpace(b.Err.String()), "\n"); strings.Join(said, "") != strings.Join(tc.said, "") {
				t.Errorf("said %q, want %q", said, tc.said)
			}
		})
	}
}

// TestLogOfLostTry: a try whose log cannot be read does not keep from the next.
func TestLogOfLostTry(t *testing.T) {
	read := false
	b := clitest.Start(t, &clitest.Fake{
		Log: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("attempt") == "1" {
				clitest.Refuse(w, api.Errorf(api.CodeUnavailable, "node gpu1 does not answer"))
				return
			}
			if r.URL.Query().Get("offset") == "" {
				io.WriteString(w, "second\n")
			}
			read = true
		},
		Polls: func(int, string) *api.JobDetail {
			if read {
				return tries(job.Finished, 2)
			}
			return tries(job.Running, 2)
		},
	})
	if err := (&Log{ID: "12", Follow: true, Try: 1}).Run(t.Context(), b.App); err != nil || b.Out.String() != "second\n" {
		t.Errorf("got %q, %v", b.Out.String(), err)
	}
	if want := "the log of try 1 is missing: node gpu1 does not answer"; !strings.Contains(b.Err.String(), want) {
		t.Errorf("said %q, want %q", b.Err.String(), want)
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

func TestTry(t *testing.T) {
	for text, want := range map[string]try{"1": 1, "12": 12, "0": 0, "-1": 0, "x": 0, "": 0, "99999999999": 0} {
		var got try
		if err := got.UnmarshalText([]byte(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
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

// TestLogOfName: a name is as good as a number where it is one job's.
func TestLogOfName(t *testing.T) {
	called := func(n job.Number, name string) api.JobDetail {
		return api.JobDetail{Job: api.Job{Number: n, Name: name, State: job.Running}}
	}
	f := &clitest.Fake{
		Jobs: []api.JobDetail{called(12, "train"), called(13, "twice"), called(14, "twice")},
		Log: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(api.HeaderOffset, "0")
			fmt.Fprintln(w, "of job", r.PathValue("id"))
		},
	}
	for name, want := range map[string]struct {
		out, err string
	}{
		"train": {"of job 12\n", ""},
		"12":    {"of job 12\n", ""},
		"twice": {"", `2 jobs are called "twice", as 13 and 14: use a number; gqueue twice lists them`},
		"none":  {"", `there is no job "none"`},
	} {
		b := clitest.Start(t, f)
		err := (&Log{ID: name}).Run(t.Context(), b.App)
		if out := b.Out.String(); out != want.out || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("glog %s: %q, %v; want %q, %q", name, out, err, want.out, want.err)
		}
	}
}
