package e2e

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestSeveralNodes runs jobs on a named node, on all at once, and a gang.
func TestSeveralNodes(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 3})
	for i := range 3 {
		name := s.nodeName(i)
		id := s.submit(doc{name: "named", command: sh("echo $GPULAB_SLAVE_HOSTNAME"), resources: map[string]any{"slaveName": name}})
		if d := s.wait(id); endOf(d) != finished || !slices.Equal(d.Nodes, []string{name}) {
			t.Errorf("want it on %s:\n%s", name, describe(d))
		}
		if out := s.must("glog", id); out != name+"\n" {
			t.Errorf("the job says that it ran on %q", out)
		}
	}
	gang := s.submit(doc{name: "gang", cpus: 8, gbatch: map[string]any{"nodes": 3}, storage: []any{"/project"},
		command: sh("echo $GBATCH_RANK-of-$GBATCH_NUM_NODES >> /project/ranks")})
	if d := s.wait(gang); endOf(d) != finished || len(d.Nodes) != 3 {
		t.Fatalf("gang:\n%s", describe(d))
	}
	got := lines(t, filepath.Join(s.project(), "ranks"))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"0-of-3", "1-of-3", "2-of-3"}, got); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	bad := s.submit(doc{name: "one_fails", cpus: 8, gbatch: map[string]any{"nodes": 3}, command: sh("trap 'exit 1' TERM; [ $GBATCH_RANK = 1 ] && exit 5; sleep 1000 & wait")})
	d := s.wait(bad)
	if diff := cmp.Diff(ended{job.Failed, job.ExitCode, 5}, endOf(d)); diff != "" {
		t.Errorf("a gang with one bad rank (-want +got):\n%s%s", diff, describe(d))
	}
}

// TestNodeCutOff cuts a node off the network. It ends its own ranks before the
// controller gives up on it, so that the job never runs in two places; the
// restartable job then runs elsewhere, and the node comes back.
func TestNodeCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	var cable *wire
	s := newSite(t, siteOptions{nodes: 2,
		ctldConfig: "nodes: {suspectAfter: 2 seconds, timeout: 10 seconds}\n",
		nodesDial: func(node int, controller string) string {
			if node > 0 {
				return controller
			}
			cable = newWire(t, strings.TrimPrefix(controller, "unix://"), node)
			return "unix://" + cable.path
		}})
	lost := s.submit(doc{name: "lost", command: idle, resources: map[string]any{"slaveName": s.nodeName(0)}})
	s.waitRunning(lost)
	// It prefers no node; the other is full until it has begun.
	full := s.submit(doc{name: "full", cpus: 8, command: idle, resources: map[string]any{"slaveName": s.nodeName(1)}})
	s.waitRunning(full)
	moves := s.submit(doc{name: "moves", command: beat, storage: []any{"/project"}, scheduling: map[string]any{"restartable": true}})
	if d := s.waitRunning(moves); d.Nodes[0] != s.nodeName(0) {
		t.Fatalf("it runs elsewhere already:\n%s", describe(d))
	}
	s.must("gcancel", full)
	eventually(t, "the job's program has written", func() bool { return exists(filepath.Join(s.project(), "beats")) })
	cable.cut()
	s.checkMove(moves)
	if d := s.wait(lost); d.State != job.Failed || job.Reason(d.Reason) != job.NodeFail {
		t.Errorf("a job that may not be restarted; want FAILED and NODE_FAIL:\n%s", describe(d))
	}
	cable.mend()
	s.waitNodes("up", 2)
	s.must("gcancel", moves)
	back := s.submit(doc{name: "back", command: []string{"true"}, resources: map[string]any{"slaveName": s.nodeName(0)}})
	if d := s.wait(back); endOf(d) != finished {
		t.Errorf("the node that came back:\n%s", describe(d))
	}
}

// beat is a program that says ten times a second where it runs.
var beat = sh("trap 'exit 1' TERM; while :; do echo $GPULAB_SLAVE_HOSTNAME >> /project/beats; sleep 0.1; done")

// checkMove waits until a beating job has moved from the first node to the
// second, and that the first does not beat any more from then on.
func (s *site) checkMove(id string) {
	s.t.Helper()
	beats := func() []string { return lines(s.t, filepath.Join(s.project(), "beats")) }
	eventually(s.t, "the job has gone on elsewhere for a while", func() bool {
		n := 0
		for _, b := range beats() {
			if b == s.nodeName(1) {
				n++
			}
		}
		return n >= 20
	})
	if got := slices.Compact(beats()); !slices.Equal(got, []string{s.nodeName(0), s.nodeName(1)}) {
		s.t.Errorf("the job ran in two places at once: %d changes of place\n%s", len(got)-1, describe(s.job(id)))
	}
}

// wire is a unix socket in front of another one, that can be cut.
type wire struct {
	path, to string
	mu       sync.Mutex
	isCut    bool
	conns    map[net.Conn]bool
}

func newWire(t *testing.T, to string, node int) *wire {
	t.Helper()
	w := &wire{path: filepath.Join(filepath.Dir(to), fmt.Sprintf("wire%d.sock", node)), to: to, conns: map[net.Conn]bool{}}
	ln, err := net.Listen("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		w.cut()
		wg.Wait()
	})
	wg.Go(func() { // ends when ln is closed
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { w.carry(c) })
		}
	})
	return w
}

// carry passes bytes both ways until either end closes or the wire is cut.
func (w *wire) carry(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("unix", w.to)
	if err != nil {
		return
	}
	defer up.Close()
	if !w.add(c, up) {
		return
	}
	done := make(chan struct{})
	go func() { // ends when either end is closed, which follows
		_, _ = io.Copy(up, c)
		up.Close()
		close(done)
	}()
	_, _ = io.Copy(c, up)
	c.Close()
	<-done
}

func (w *wire) add(cs ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range cs {
		w.conns[c] = true
	}
	return !w.isCut
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for c := range w.conns {
		c.Close()
	}
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

// TestNodeDaemonGone kills a node's daemon for good. Its container is cut off
// from the controller just as by the network: it must have ended before the
// job runs elsewhere.
func TestNodeDaemonGone(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{nodes: 2, ctldConfig: "nodes: {suspectAfter: 2 seconds, timeout: 10 seconds}\n"})
	full := s.submit(doc{name: "full", cpus: 8, command: idle, resources: map[string]any{"slaveName": s.nodeName(1)}})
	s.waitRunning(full)
	moves := s.submit(doc{name: "moves", command: beat, storage: []any{"/project"}, scheduling: map[string]any{"restartable": true}})
	s.waitRunning(moves)
	s.must("gcancel", full)
	eventually(t, "the job's program has written", func() bool { return exists(filepath.Join(s.project(), "beats")) })
	s.nodes[0].kill()
	s.checkMove(moves)
}
