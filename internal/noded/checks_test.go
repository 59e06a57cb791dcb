package noded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// A machine whose health program fails takes no jobs: not those of orders that were
// sent before, not after its daemon was killed, and not before the program has run
// anew and passed. What runs there goes on.
func TestHealthProgram(t *testing.T) {
	needContainers(t)
	dir := t.TempDir()
	program, bad := filepath.Join(dir, "health"), filepath.Join(dir, "bad")
	text := "#!/bin/sh\necho \"$(id -u) $GBATCH_NODE\" >> " + dir + "/ran\nsleep 1000 &\n[ ! -e " + bad + " ] || { echo GPU 3 fell; exit 2; }\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(c *config.Config) {
		c.Health.Every, c.Health.Programs = config.Duration(10*time.Second), []config.Program{{Path: program}}
	})
	s.start()
	fit := func(what string, ok func(list []string) bool) {
		t.Helper()
		s.await(what, func() bool { return ok(s.last.Unhealthy) && s.last.Instance != "" })
	}
	healthy := func(list []string) bool { return len(list) == 0 }
	says := func(text string) func([]string) bool {
		return func(list []string) bool { return len(list) == 1 && strings.HasPrefix(list[0], text) }
	}
	fit("first pass", healthy)
	s.want(rankID(1), order(patient))
	s.ready(rankID(1))
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := "health program " + program + ": exit code 2: GPU 3 fell"
	fit("the failure", says(failed))
	s.want(rankID(2), order("true"))
	if e := s.exit(rankID(2)); e.Reason != job.Server || e.StartedMS != 0 || !strings.Contains(e.Message, "is not fit for jobs: "+failed) {
		t.Errorf("a job began on it: %+v", e)
	}
	s.drop(rankID(2))
	s.halt()
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	ran := countLines(t, filepath.Join(dir, "ran"))
	s.start()
	if list := s.a.health.reasons(); !says("to be proven fit again, after: "+failed)(list) && countLines(t, filepath.Join(dir, "ran")) == ran {
		t.Errorf("after a restart it is unhealthy for %q", list)
	}
	fit("the second pass", healthy)
	if now := countLines(t, filepath.Join(dir, "ran")); now <= ran {
		t.Errorf("it is back, and the program ran %d times as before", now)
	}
	s.want(rankID(3), order("exit 3"))
	if e := s.exit(rankID(3)); e.Code != 3 {
		t.Errorf("%+v", e)
	}
	s.empty()
	s.halt()
	s.leavesNothing()
	if text, _ := os.ReadFile(filepath.Join(dir, "ran")); !strings.HasPrefix(string(text), "0 "+s.cfg.Name+"\n") {
		t.Errorf("the program ran as %q", text)
	}
}

func countLines(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// The controller is asked for its time now and then, and what it says in time counts.
func TestClock(t *testing.T) {
	asked, away := 0, error(nil)
	c := &clock{remote: true, ask: func(context.Context) (time.Time, error) {
		asked++
		return time.Now().Add(-time.Minute), away
	}}
	for range 3 {
		if skew, told := c.skew(t.Context()); !told || skew.Round(time.Second) != time.Minute || asked != 1 {
			t.Errorf("skew %s, %t; asked %d times", skew, told, asked)
		}
	}
	c.asked, away = time.Now().Add(-2*clockEvery), errors.New("away")
	if skew, told := c.skew(t.Context()); !told || skew.Round(time.Second) != time.Minute || asked != 2 {
		t.Errorf("while it is away: %s, %t", skew, told)
	}
	if _, told := (&clock{}).skew(t.Context()); told {
		t.Error("on one machine there is one clock")
	}
}
