package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// writer writes lines into its log, and the same into the project, until it is
// told to end.
var writer = sh(`i=0; until [ -e /project/go ]; do i=$((i+1)); echo "line $i" | tee -a /project/all; sleep 0.01; done; printf 'the end' | tee -a /project/all`)

// kept is what the controller's files have of jobs' logs, in the order of their names.
func (s *site) kept() string {
	s.t.Helper()
	var files []string
	for _, pattern := range []string{"*/*/*.log", "small/*.pack"} {
		found, err := filepath.Glob(filepath.Join(s.dir, "ctld/logs/*", pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		files = append(files, found...)
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			s.t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// written is what the program says that it has written.
func (s *site) written() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.project(), "all"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

// dies ends a node's daemon at once, and takes its directory away as far as
// what still runs there lets it.
func (s *site) dies(node int) {
	s.t.Helper()
	s.nodes[node].kill()
	logs, err := filepath.Glob(filepath.Join(s.dir, s.nodeName(node), "ranks/*/box/log"))
	if err != nil || len(logs) == 0 {
		s.t.Fatalf("the node has no logs: %v", err)
	}
	for _, dir := range logs {
		if err := os.RemoveAll(dir); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestLogOutlivesNode: what a job wrote is read when its node is dead and its
// directory gone, all of it that had been sent, byte by byte; glog says so, and
// follows to the end.
func TestLogOutlivesNode(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{nodes: 2, ctldConfig: quick + "nodes: {suspectAfter: 2 seconds, timeout: 10 seconds}\n"})
	id := s.submit(doc{name: "writer", command: writer, storage: []any{"/project"}, resources: map[string]any{"slaveName": s.nodeName(0)}})
	s.waitRunning(id)
	follows := s.background("glog", "-f", id)
	eventually(t, "it has written", func() bool { return strings.Count(s.written(), "\n") > 20 })
	before := s.written()
	eventually(t, "that was sent", func() bool { return strings.HasPrefix(s.kept(), before) })
	s.dies(0)
	s.waitNodes("lost", 1)
	r := s.run("glog", id)
	if r.code != 0 || !strings.HasPrefix(r.out, before) || !strings.HasPrefix(s.written(), r.out) || !strings.Contains(r.err, "this is the controller's copy of the log, as of ") {
		t.Errorf("glog of a dead node, after %d bytes were sent of %d: %v", len(before), len(s.written()), r)
	}
	if r := s.run("glog", "--grep", "line 1$", id); r.out != "line 1\n" {
		t.Errorf("glog --grep: %v", r)
	}
	if d := s.wait(id); d.State != job.Failed || job.Reason(d.Reason) != job.NodeFail {
		t.Errorf("the job:\n%s", describe(d))
	}
	follows.code()
	if out := follows.out.String(); !strings.HasPrefix(out, before) || !strings.HasPrefix(s.written(), strings.TrimSuffix(out, "\n")) {
		t.Errorf("glog -f had %q, of %q", out, s.written())
	}
}

// TestLogCopyIsExact kills the controller and the node by turns while a job
// writes: in the end the copy has the very bytes of the log, and all of them.
func TestLogCopyIsExact(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	id := s.submit(doc{name: "writer", command: writer, storage: []any{"/project"}})
	s.waitRunning(id)
	for i := range 3 {
		had := len(s.kept())
		eventually(t, "more was sent", func() bool { return len(s.kept()) > had })
		for _, d := range []*daemon{s.ctld, s.nodes[0]}[i%2:] {
			d.kill()
		}
		for _, d := range []*daemon{s.nodes[0], s.ctld} {
			if !d.running() {
				d.start()
			}
		}
	}
	s.inProject("go", "")
	if d := s.wait(id); endOf(d) != finished {
		t.Fatalf("the job:\n%s", describe(d))
	}
	want := s.written()
	if out := s.must("glog", id); out != want {
		t.Fatalf("the node's log has %d bytes, want %d", len(out), len(want))
	}
	eventually(t, "the copy is complete", func() bool {
		done, _ := filepath.Glob(filepath.Join(s.dir, "ctld/logs/*/*/*/complete"))
		return len(done) == 1
	})
	s.dies(0)
	r := s.run("glog", id)
	if r.out != want || !strings.Contains(r.err, "this is the controller's copy of the log, and all of it") {
		t.Errorf("the copy has %d bytes, want %d: %s", len(r.out), len(want), r.err)
	}
	s.nodes[0].start()
	s.waitNodes("up", 1)
	if r := s.run("glog", "-n", "1", id); r.out != "the end" {
		t.Errorf("glog -n 1 of a node that has the log no more: %v", r)
	}
}

// TestLogsOfTasks: the tasks of an array and the ranks of a gang have copies of
// their own; projects that keep logs on nodes have none.
func TestLogsOfTasks(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{nodes: 2, ctldConfig: "projects: [{name: default}, {name: quiet, logs: node}]\nnodes: {suspectAfter: 3 seconds}\n"})
	array := s.submit(doc{name: "array", gbatch: map[string]any{"tasks": "0-19"}, command: sh("echo task $GBATCH_TASK")})
	gang := s.submit(doc{name: "gang", cpus: 8, gbatch: map[string]any{"nodes": 2}, command: sh("echo rank $GBATCH_RANK")})
	quiet := strings.TrimSpace(s.must("gsubmit", "-A", "quiet", s.write(doc{name: "quiet", command: sh("echo quiet")}.json())))
	for _, id := range []string{array, gang, quiet} {
		if d := s.wait(id); d.State != job.Finished {
			t.Fatal(describe(d))
		}
	}
	eventually(t, "all copies are there", func() bool {
		kept := s.kept()
		for i := range 20 {
			if !strings.Contains(kept, fmt.Sprintf("task %d\n", i)) {
				return false
			}
		}
		return strings.Contains(kept, "rank 0\n") && strings.Contains(kept, "rank 1\n")
	})
	s.dies(0)
	s.dies(1)
	s.waitNodes("suspect", 2) // else each is asked first
	for i := range 20 {
		if out := s.must("glog", fmt.Sprintf("%s_%d", array, i)); out != fmt.Sprintf("task %d\n", i) {
			t.Errorf("task %d has %q", i, out)
		}
	}
	if out := s.must("glog", "--all", gang); out != "0: rank 0\n1: rank 1\n" {
		t.Errorf("the gang has %q", out)
	}
	if strings.Contains(s.kept(), "quiet") {
		t.Error("what is to stay on the node is kept by the controller")
	}
	for _, n := range s.nodes {
		n.start()
	}
	if d := s.wait(s.submit(doc{name: "again", cpus: 8, gbatch: map[string]any{"nodes": 2}, command: []string{"true"}})); d.State != job.Finished {
		t.Error(describe(d))
	}
}
