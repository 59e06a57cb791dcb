package noded

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/identity"
)

// flipDigit changes the last digit of a file's text, as a disk may: it is JSON as before.
func flipDigit(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end := bytes.LastIndexByte(b, '}')
	b[bytes.LastIndexAny(b[:end], "0123456789")] ^= 1
	return os.WriteFile(path, b, 0o600)
}

// TestDamagedFiles damages each other file of a node while there is no daemon, of a rank that runs, one that has
// ended, and one whose shim was killed, and of the node itself: the node starts, no rank is stuck, nothing that ended as
// its record says no more is told as if it were so, and the rank beside them goes on.
func TestDamagedFiles(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	whole := rankID(1)
	s.want(whole, order(patient))
	s.ready(whole)
	ranks := map[string]job.RankID{}
	for i, file := range []string{"exit.json", "exit.json is a directory", "shim.json", "no shim.json", "shim.json of one that runs", "no shim.json of one that runs", "pipes for rank.json, limit.json and shim.json"} {
		ranks[file] = rankID(10 + i)
		s.want(ranks[file], order(patient))
		s.ready(ranks[file])
	}
	p.kill()
	box := func(file string) string { return filepath.Join(s.cfg.StateDir, "ranks", ranks[file].String(), "box") }
	host, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	const pipes = "pipes for rank.json, limit.json and shim.json"
	ended := []string{"exit.json", "exit.json is a directory", "shim.json", "no shim.json"}
	for _, file := range ended {
		if !strings.HasPrefix(file, "exit.json") { // its shim first, which could write how it ended
			for _, pid := range shims(box(file)) {
				err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
			}
			continue
		}
		g, err := host.Cgroups.Find(host.CgroupPath(ranks[file]))
		if err == nil {
			err = g.Kill(time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the shim has written how it ended", func() bool { _, err := os.Stat(box(file) + "/exit.json"); return err == nil })
	}
	directory := box("exit.json is a directory") + "/exit.json"
	err = errors.Join(err, flipDigit(box("exit.json")+"/exit.json"), os.Remove(directory), os.Mkdir(directory, 0o700), flipDigit(box("shim.json")+"/shim.json"), flipDigit(box("shim.json of one that runs")+"/shim.json"),
		os.Remove(box("no shim.json")+"/shim.json"), os.Remove(box("no shim.json of one that runs")+"/shim.json"))
	for _, file := range []string{"../rank.json", "../limit.json", "shim.json"} {
		path := filepath.Join(box(pipes), file)
		err = errors.Join(err, os.RemoveAll(path), syscall.Mkfifo(path, 0o600))
	}
	for _, file := range []string{"faults.json", "reboot.json", "ids.json", "instance", "records", "health.json"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.cfg.StateDir, file), []byte("\x00{garbled"), 0o600))
	}
	for _, dir := range []string{"programs", "prologs", "data/cache"} { // a file is in the place of each
		path := filepath.Join(s.cfg.StateDir, dir)
		err = errors.Join(err, os.RemoveAll(path), os.WriteFile(path, nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	p = s.spawn(1)
	for _, file := range append(ended, pipes) {
		if e := s.exit(ranks[file]); e.Reason != job.NodeFail {
			t.Errorf("%s: it ended with %+v", file, e)
		}
	}
	for _, id := range []job.RankID{whole, ranks["shim.json of one that runs"], ranks["no shim.json of one that runs"]} {
		s.stop(id, api.Stop{Signal: "TERM", GraceMS: 60_000, Reason: job.ByUser})
		if e := s.exit(id); e.Code != 9 {
			t.Errorf("rank %s goes on, and ends with %+v", id, e)
		}
	}
	s.empty()
	p.term()
}

// TestDamagedRecords takes away or garbles the node's record of a rank, of one that runs and of
// one that has ended, while there is no daemon: each ends as the node's fault and not as its
// job's, the rank beside them goes on, and nothing of them is left.
func TestDamagedRecords(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	damage := []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 0) },
		func(path string) error { return os.Truncate(path, 40) },
		func(path string) error { return os.WriteFile(path, []byte("\x00\xff{garbled"), 0o600) },
		flipDigit,
	}
	whole := rankID(1)
	s.want(whole, order(patient))
	s.ready(whole)
	var running, ended []job.RankID
	for i := range damage {
		run, end := rankID(10+i), rankID(20+i)
		for _, id := range []job.RankID{run, end} {
			s.want(id, order(patient))
			s.ready(id)
		}
		running, ended = append(running, run), append(ended, end)
	}
	p.kill()
	host, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ended {
		g, err := host.Cgroups.Find(host.CgroupPath(id))
		if err == nil {
			err = g.Kill(time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, do := range damage {
		for _, id := range []job.RankID{running[i], ended[i]} {
			if err := do(filepath.Join(s.cfg.StateDir, "ranks", id.String(), "rank.json")); err != nil {
				t.Fatal(err)
			}
		}
	}
	p = s.spawn(1)
	for _, id := range append(running, ended...) {
		if e := s.exit(id); e.Reason != job.NodeFail || !strings.Contains(e.Message, "record of the job was damaged") {
			t.Errorf("rank %s ended with %+v", id, e)
		}
	}
	s.stop(whole, api.Stop{Signal: "TERM", GraceMS: 60_000, Reason: job.ByUser})
	if e := s.exit(whole); e.Code != 9 {
		t.Errorf("the rank beside them: %+v", e)
	}
	s.empty()
	p.term()
}
