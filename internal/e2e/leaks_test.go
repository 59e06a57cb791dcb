package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// close ends a site's jobs and daemons and looks at what they left.
func (s *site) close() {
	t := s.t
	if t.Failed() {
		for _, d := range append([]*daemon{s.ctld}, s.nodes...) {
			if d != nil {
				t.Logf("the end of the log of %s:\n%s", d.name, tail(d.log, 40))
			}
		}
	}
	s.endJobs()
	s.api.Close()
	for _, d := range append(s.nodes, s.ctld) {
		if d == nil || d.cmd == nil {
			continue
		}
		if err := d.stop(); err != nil {
			t.Errorf("%s did not stop well: %v\n%s", d.name, err, tail(d.log, 400))
		}
	}
	var left []string
	if !poll(patience, func() bool { left = s.leftovers(); return len(left) == 0 }) {
		t.Errorf("the site left behind:\n%s", strings.Join(left, "\n"))
		for _, d := range s.nodes {
			t.Logf("the end of the log of %s:\n%s", d.name, tail(d.log, 200))
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Errorf("remove the site: %v", err)
	}
}

// endJobs cancels what has not ended, with all daemons up.
func (s *site) endJobs() {
	if s.ctld == nil || s.ctld.log == "" || !exists(s.ctld.log) {
		return
	}
	started := false
	for _, d := range append([]*daemon{s.ctld}, s.nodes...) {
		if !d.running() {
			d.cmd, started = nil, true
			d.start()
		}
	}
	ctx := context.Background() // the test's own is over
	idle := poll(patience, func() bool {
		list, err := s.api.Jobs(ctx, client.JobFilter{})
		if err != nil {
			return false
		}
		var ids []string
		for _, j := range list.Jobs {
			if !j.State.Final() {
				ids = append(ids, fmt.Sprint(j.Number))
			}
		}
		if len(ids) > 0 {
			_, _ = s.api.Action(ctx, "cancel", &api.ActionRequest{IDs: ids})
		}
		return len(ids) == 0
	})
	if !idle {
		s.t.Errorf("jobs do not end when they are cancelled")
	}
	// A daemon clears up what the one before had to leave.
	if started && !poll(patience, func() bool { return !slices.ContainsFunc(s.leftovers(), ofRank) }) {
		s.t.Errorf("the daemons do not clear up what the ones before them left")
	}
}

// ofRank says whether something left is a rank's. The guard beside each daemon names
// the directories of them all, whether there are any or not.
func ofRank(what string) bool {
	return strings.Contains(what, "/ranks/") && !strings.Contains(what, "/ranks/*/")
}

// leftovers lists what is on the machine of a site that has stopped.
func (s *site) leftovers() []string {
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		cmdline, _ := os.ReadFile(p + "/cmdline")
		groups, _ := os.ReadFile(p + "/cgroup")
		if s.mine(string(cmdline)) || s.mine(string(groups)) {
			left = append(left, "process "+filepath.Base(p)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if s.mine(line) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && s.mine(path) {
			left = append(left, "cgroup "+path)
		}
		return nil // a group may go while we look
	})
	return left
}

// mine says whether a text names the site: its directory and the names of its
// nodes hold the same random word.
func (s *site) mine(text string) bool {
	return strings.Contains(text, strings.TrimPrefix(filepath.Base(s.dir), "gbatch-e2e-site-"))
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// tail is the last lines of a file.
func tail(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
