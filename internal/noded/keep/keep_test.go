package keep

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/logs"
)

// fake is a controller that keeps logs, and the node's files.
type fake struct {
	t   *testing.T
	dir string

	mu       sync.Mutex
	ended    map[string]bool // ranks' directories
	text     map[job.RankID]string
	lost     map[job.RankID]int64
	done     map[string]bool
	requests int
	largest  int // bytes of output in one request
	down     bool
	answer   func(p *api.LogPiece) *api.LogTaken // nil: keeps it
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, dir: t.TempDir(), ended: map[string]bool{}, text: map[job.RankID]string{}, lost: map[job.RankID]int64{}, done: map[string]bool{}}
}

func (f *fake) SendLogs(_ context.Context, _ string, req *api.LogPieces) (*api.LogsTaken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	if f.down {
		return nil, errors.New("down")
	}
	out := &api.LogsTaken{}
	total := 0
	for i := range req.Pieces {
		p := &req.Pieces[i]
		data, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.Data)))
		if err != nil && len(p.Data) > 0 || len(data) > api.MaxLogPiece {
			f.t.Errorf("%s: %d bytes, %v", p.Rank, len(data), err)
		}
		total += len(data)
		if f.answer != nil {
			if a := f.answer(p); a != nil {
				out.Pieces = append(out.Pieces, *a)
				continue
			}
		}
		have := int64(len(f.text[p.Rank])) + f.lost[p.Rank]
		if p.Offset-p.Lost == have {
			f.lost[p.Rank] += p.Lost
			f.text[p.Rank] += string(data)
			have = p.Offset + int64(len(data))
		}
		out.Pieces = append(out.Pieces, api.LogTaken{Offset: have, Done: p.End && have == p.Offset+int64(len(data))})
	}
	f.largest = max(f.largest, total)
	return out, nil
}

func (f *fake) keeper() *Keeper {
	return New(Options{
		Node: "n1", Controller: f, Log: slog.New(slog.DiscardHandler),
		Open: func(dir string) (*logs.Log, error) { return logs.Open(dir, func() bool { return f.hasEnded(dir) }) },
		Done: func(dir string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.done[dir] = true
		},
	})
}

func (f *fake) hasEnded(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended[dir]
}

// end ends a rank.
func (f *fake) end(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[dir] = true
}

func rank(n int) job.RankID { return job.RankID{Job: job.Number(n), Attempt: 1} }

// log begins the log of a rank.
func (f *fake) log(n int, limits logs.Limits) (Source, *logs.Writer) {
	f.t.Helper()
	s := Source{ID: rank(n), UUID: "u", Dir: filepath.Join(f.dir, fmt.Sprint(n))}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	w, err := logs.NewWriter(s.Dir, limits)
	if err != nil {
		f.t.Fatal(err)
	}
	return s, w
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// within runs a keeper in time of its own until the test's steps are over.
func within(t *testing.T, steps func(t *testing.T, f *fake, k *Keeper, restart func())) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		k := f.keeper()
		var stop func()
		start := func() {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { k.Run(ctx); close(done) }()
			stop = func() { cancel(); <-done }
		}
		start()
		steps(t, f, k, func() { // the daemon, which remembers nothing
			stop()
			*k = *f.keeper()
			start()
		})
		stop()
	})
}

// wait lets time pass in the bubble, which costs none.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// letSend lets the keeper send what was written, with the five seconds that are
// promised.
func letSend() { wait(5 * time.Second) }

// TestSilent: that a log is empty is sent only where the rank's end does not say it.
func TestSilent(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, _ func()) {
		for n := range 2 {
			s, _ := f.log(n, logs.Limits{})
			k.Add(s)
			f.end(s.Dir)
			letSend()
			if f.requests != 0 {
				t.Errorf("rank %d: sent before the rank was over", n)
			}
			if n == 0 {
				k.Drop(s.Dir)
				continue
			}
			k.Over(s.Dir)
			letSend()
			if f.requests != 1 || !f.done[s.Dir] {
				t.Errorf("%d requests, done: %v", f.requests, f.done[s.Dir])
			}
		}
	})
}

// TestSent: what is written is there five seconds later, and all of it at the end.
func TestSent(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, _ func()) {
		s, w := f.log(1, logs.Limits{})
		k.Add(s)
		k.Add(s)
		want := ""
		for i := range 20 {
			line := fmt.Sprintf("line %d\n", i)
			write(t, w, line)
			want += line
			letSend()
			if f.text[s.ID] != want {
				t.Fatalf("after line %d: %q", i, f.text[s.ID])
			}
		}
		before := f.requests
		letSend()
		if f.requests != before {
			t.Error("requests are made without anything new")
		}
		if f.done[s.Dir] {
			t.Error("done before its end")
		}
		f.end(s.Dir)
		letSend()
		if !f.done[s.Dir] || len(k.list) != 0 {
			t.Errorf("at the end: done %v, %d waiting", f.done[s.Dir], len(k.list))
		}
	})
}

// TestSentOverFaults: a controller that is away, refuses, has no room or has gone
// back, and daemons that are restarted.
func TestSentOverFaults(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, restart func()) {
		s, w := f.log(1, logs.Limits{})
		add := func() { k.Add(s) }
		add()
		write(t, w, "one ")
		letSend()
		f.down = true
		write(t, w, "two ")
		letSend()
		if bytes, age := k.Waiting(); bytes != 4 || age < 2*time.Second {
			t.Errorf("waiting: %d bytes, for %v", bytes, age)
		}
		restart()
		add()
		f.down = false
		write(t, w, "three ")
		wait(10 * time.Second)
		letSend()
		if f.text[s.ID] != "one two three " {
			t.Errorf("after it came back: %q", f.text[s.ID])
		}
		if bytes, age := k.Waiting(); bytes != 0 || age != 0 {
			t.Errorf("waiting: %d bytes, for %v", bytes, age)
		}
		f.answer = func(*api.LogPiece) *api.LogTaken { return &api.LogTaken{Later: true} }
		write(t, w, "four ")
		letSend()
		f.answer, f.text[s.ID] = nil, "one " // it was restored from an older copy
		write(t, w, "five")
		wait(restTime)
		letSend()
		if f.text[s.ID] != "one two three four five" {
			t.Errorf("after it went back: %q", f.text[s.ID])
		}
		f.answer = func(*api.LogPiece) *api.LogTaken { return &api.LogTaken{Refused: "not yours"} }
		write(t, w, " six")
		letSend()
		if !f.done[s.Dir] {
			t.Error("what is refused is sent again")
		}
	})
}

// TestHog: who writes without end leaves the others their five seconds, and of
// its own log the beginning and the end arrive, with a gap that is told.
func TestHog(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, _ func()) {
		hog, w := f.log(1, logs.Limits{MaxBytes: 24 << 20})
		k.Add(hog)
		var others []Source
		var theirs []*logs.Writer
		for i := range 20 {
			s, w := f.log(10+i, logs.Limits{})
			k.Add(s)
			others, theirs = append(others, s), append(theirs, w)
		}
		page := strings.Repeat("x", 1<<20-1) + "\n"
		for second := range 10 {
			for range 10 {
				write(t, w, page)
			}
			for _, w := range theirs {
				write(t, w, fmt.Sprintf("%d\n", second))
			}
			wait(time.Second)
		}
		write(t, w, "the end")
		f.end(hog.Dir)
		letSend()
		for _, s := range others {
			if !strings.HasSuffix(f.text[s.ID], "\n9\n") {
				t.Errorf("%s has %q", s.ID, f.text[s.ID])
			}
		}
		if len(f.text[hog.ID]) > 15*rankRate+rankBurst {
			t.Errorf("the hog has sent %d bytes in 15 seconds", len(f.text[hog.ID]))
		}
		wait(time.Minute)
		letSend()
		total := int64(100<<20 + len("the end"))
		if n := int64(len(f.text[hog.ID])); n+f.lost[hog.ID] != total || f.lost[hog.ID] == 0 || !strings.HasSuffix(f.text[hog.ID], "\nthe end") || !f.done[hog.Dir] {
			t.Errorf("the hog's log: %d bytes and %d lost of %d, done %v", n, f.lost[hog.ID], total, f.done[hog.Dir])
		}
		if f.largest > maxRequest {
			t.Errorf("a request has %d bytes", f.largest)
		}
	})
}

// TestManyShort: the logs of many short tasks go in few requests.
func TestManyShort(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, _ func()) {
		const n = 1100
		for i := range n {
			s, w := f.log(i, logs.Limits{})
			write(t, w, fmt.Sprintf("task %d\n", i))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			s.Over = i%2 == 0
			if !s.Over {
				f.end(s.Dir)
			}
			k.Add(s)
		}
		letSend()
		letSend()
		if len(f.done) != n || f.requests > 2*n/api.MaxLogPieces+2 {
			t.Errorf("%d are done by %d requests", len(f.done), f.requests)
		}
		for i := range n {
			if diff := cmp.Diff(fmt.Sprintf("task %d\n", i), f.text[rank(i)]); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// TestMovedAndDropped: a log whose directory is renamed goes on; one that is
// removed, or never comes, holds up nothing.
func TestMovedAndDropped(t *testing.T) {
	within(t, func(t *testing.T, f *fake, k *Keeper, _ func()) {
		s, w := f.log(1, logs.Limits{})
		k.Add(s)
		k.Add(Source{ID: rank(2), Dir: filepath.Join(f.dir, "none")})
		write(t, w, "one ")
		letSend()
		aside := s.Dir + "~"
		if err := os.Rename(s.Dir, aside); err != nil {
			t.Fatal(err)
		}
		k.Moved(s.Dir, aside)
		again, w2 := f.log(1, logs.Limits{})
		again.ID = rank(3)
		k.Add(again)
		write(t, w, "two")
		write(t, w2, "three")
		letSend()
		if f.text[s.ID] != "one two" || f.text[again.ID] != "three" {
			t.Errorf("got %q and %q", f.text[s.ID], f.text[again.ID])
		}
		k.Drop(aside)
		k.Drop(filepath.Join(f.dir, "none"))
		if len(k.list) != 1 {
			t.Errorf("%d are left", len(k.list))
		}
	})
}
