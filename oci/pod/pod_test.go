package pod

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// site is programs that do nothing but to end, and what became of them with the time.
type site struct {
	*Pod
	start time.Time

	mu      sync.Mutex // guards what follows
	told    []string
	stopped bool
}

func newSite() *site {
	s := &site{Pod: New(), start: time.Now()}
	s.Log, s.Signal, s.Grace, s.Calls = s, unix.SIGUSR1, 30*time.Second, make(chan func())
	s.Stopped = func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.stopped }
	s.Served = func() { s.say("served") }
	return s
}

func (s *site) Write(p []byte) (int, error) {
	s.say("%s", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func (s *site) say(what string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf("%s %s", time.Since(s.start).Round(time.Second), fmt.Sprintf(what, args...)))
}

// how a program ends: with a code of its own; by a signal after so long, 0: by none but KILL.
type how struct {
	code   int
	polite time.Duration
}

// program runs for each of these times, in turn, the last for all that follow.
func (s *site) program(name string, role Role, h how, runs ...time.Duration) *Program {
	p := &Program{Name: name, Role: role}
	var stop chan int
	p.Begin = func() error {
		if !s.Enter(p) {
			return errors.New("stopped")
		}
		s.say("%s begins", name)
		s.SetRuns(p, true)
		stop = make(chan int, 4)
		run := runs[0]
		if len(runs) > 1 {
			runs = runs[1:]
		}
		go func(stop chan int) {
			with := h.code
			select {
			case <-time.After(run):
			case with = <-stop:
			}
			s.Ended(p, func() int { s.SetRuns(p, false); s.say("%s ends with %d", name, with); return with })
		}(stop)
		return nil
	}
	p.Renew, p.Drop, p.Text = func() error { return nil }, func() { s.say("%s is dropped", name) }, func() string { return "ended" }
	p.Stop = func(sig syscall.Signal) error {
		s.say("%s gets %s", name, unix.SignalName(sig))
		switch ch := stop; {
		case sig == unix.SIGKILL:
			ch <- 137
		case h.polite > 0:
			time.AfterFunc(h.polite, func() { ch <- 0 })
		}
		return nil
	}
	return p
}

const long = 24 * time.Hour

// TestRun is what happens when, in each case, and whose end is told.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		programs func(*site) []*Program
		edit     func(*site)
		said     string
		want     string
	}{
		"all well": {func(s *site) []*Program {
			return []*Program{s.program("first", First, how{0, 0}, 5*time.Second), s.program("side", Sidecar, how{0, time.Second}, long), s.program("mate", Beside, how{0, 0}, 7*time.Second), s.program("own", Own, how{0, 0}, 2*time.Second)}
		}, nil, "own", `0s gbatch: first, 1 of 1 that run before the job
0s first begins
5s first ends with 0
5s first is dropped
5s side begins
5s gbatch: the job itself
5s own begins
5s served
5s mate begins
7s own ends with 0
12s mate ends with 0
12s side gets SIGTERM
13s side ends with 0`},
		"first fails": {func(s *site) []*Program {
			return []*Program{s.program("side", Sidecar, how{0, 0}, long), s.program("first", First, how{3, 0}, time.Second), s.program("own", Own, how{0, 0}, long)}
		}, nil, "first", `0s side begins
0s gbatch: first, 1 of 1 that run before the job
0s first begins
1s first ends with 3
1s side gets SIGTERM
31s side gets SIGKILL
31s side ends with 137`},
		"each to its end": {func(s *site) []*Program {
			return []*Program{s.program("mate", Beside, how{4, 0}, time.Second), s.program("own", Own, how{5, 0}, 9*time.Second)}
		}, nil, "mate", "0s own begins\n0s served\n0s mate begins\n1s mate ends with 4\n9s own ends with 5"},
		"together": {func(s *site) []*Program {
			return []*Program{s.program("polite", Beside, how{0, 2 * time.Second}, long), s.program("deaf", Beside, how{0, 0}, long), s.program("own", Own, how{5, 0}, time.Second)}
		}, func(s *site) { s.FailTogether = true }, "own", `0s own begins
0s served
0s polite begins
0s deaf begins
1s own ends with 5
1s polite gets SIGUSR1
1s deaf gets SIGUSR1
3s polite ends with 0
31s deaf gets SIGKILL
31s deaf ends with 137`},
		"again": {func(s *site) []*Program {
			return []*Program{s.program("side", Sidecar, how{1, 0}, time.Second, time.Second, time.Second, 11*time.Minute, time.Second, long), s.program("own", Own, how{0, 0}, 12*time.Minute)}
		}, func(s *site) { s.Grace = time.Second }, "own", `0s side begins
0s own begins
0s served
1s side ends with 1
1s gbatch: side ended; it begins again in 0s
1s side begins
2s side ends with 1
2s gbatch: side ended; it begins again in 10s
12s side begins
13s side ends with 1
13s gbatch: side ended; it begins again in 20s
33s side begins
11m33s side ends with 1
11m33s gbatch: side ended; it begins again in 0s
11m33s side begins
11m34s side ends with 1
11m34s gbatch: side ended; it begins again in 10s
11m44s side begins
12m0s own ends with 0
12m0s side gets SIGTERM
12m1s side gets SIGKILL
12m1s side ends with 137`},
		"stopped": {func(s *site) []*Program {
			return []*Program{s.program("side", Sidecar, how{1, time.Second}, 4*time.Second), s.program("mate", Beside, how{0, time.Second}, long), s.program("own", Own, how{7, 3 * time.Second}, long)}
		}, func(s *site) {
			time.AfterFunc(2*time.Second, func() {
				s.mu.Lock()
				s.stopped = true
				s.mu.Unlock()
				s.Stop(unix.SIGINT)
			})
		}, "own", `0s side begins
0s own begins
0s served
0s mate begins
2s own gets SIGINT
2s mate gets SIGINT
3s mate ends with 0
4s side ends with 1
5s own ends with 0`},
		"stands still": {func(s *site) []*Program {
			return []*Program{s.program("side", Sidecar, how{1, time.Second}, time.Second, long), s.program("own", Own, how{0, 0}, 9*time.Second)}
		}, func(s *site) {
			s.Pause(true)
			time.AfterFunc(5*time.Second, func() { s.Pause(false) })
		}, "own", `0s side begins
0s own begins
0s served
1s side ends with 1
1s gbatch: side ended; it begins again in 0s
5s side begins
9s own ends with 0
9s side gets SIGTERM
10s side ends with 0`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				list := tc.programs(s)
				if tc.edit != nil {
					tc.edit(s)
				}
				said, err := s.Run(list)
				if err != nil || said.Name != tc.said {
					t.Errorf("the end of %q, %v; want %q", said.Name, err, tc.said)
				}
				if diff := cmp.Diff(tc.want, strings.Join(s.told, "\n")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestNotBegun: a program that cannot begin is the end of the others.
func TestNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		mate := s.program("mate", Beside, how{0, 0}, long)
		mate.Begin = func() error { return errors.New("no such command") }
		said, err := s.Run([]*Program{s.program("side", Sidecar, how{0, time.Second}, long), mate, s.program("own", Own, how{0, time.Second}, long)})
		if err == nil || said != mate {
			t.Errorf("the end of %q, %v", said.Name, err)
		}
		want := "0s side begins\n0s own begins\n0s served\n0s own gets SIGUSR1\n1s own ends with 0\n1s side gets SIGTERM\n2s side ends with 0"
		if diff := cmp.Diff(want, strings.Join(s.told, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
