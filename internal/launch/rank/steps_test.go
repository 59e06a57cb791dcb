package rank

import (
	"encoding/json"
	"io"
	"net"
	"testing"

	"gbatch/internal/launch"
)

// TestCanceledBeforeItRuns: a step that is canceled when its number is recorded and has not come back yet
// is told so when it runs, and only that one.
func TestCanceledBeforeItRuns(t *testing.T) {
	s := &steps{running: map[uint32]*claim{}, early: map[uint32]bool{}}
	begin := func(number uint32) *claim {
		c := &claim{cancel: make(chan struct{})}
		s.runs(c, number)
		return c
	}
	canceled := func(c *claim) bool {
		select {
		case <-c.cancel:
			return true
		default:
			return false
		}
	}
	s.cancel(1)
	zero, one, two := begin(0), begin(1), begin(2)
	s.cancel(2)
	s.cancel(2) // as it may be said again
	for i, want := range []bool{false, true, true} {
		if got := canceled([]*claim{zero, one, two}[i]); got != want {
			t.Errorf("step %d is canceled: %t", i, got)
		}
	}
}

// TestLeavesBeforeItIsTold: when an srun hears that its end is recorded, the next one finds free what it had.
func TestLeavesBeforeItIsTold(t *testing.T) {
	n := &node{pending: map[uint64]launch.NodeRequest{}, answers: map[uint64]chan launch.NodeReply{}}
	s := &Server{kills: kills{read: func() uint64 { return 0 }}, steps: &steps{node: n, running: map[uint32]*claim{}}}
	c := &claim{cancel: make(chan struct{})}
	done, err := json.Marshal(launch.Done{Code: 3})
	if err != nil {
		t.Fatal(err)
	}
	frames := make(chan launch.Frame, 1)
	frames <- launch.Frame{Kind: launch.KindDone, Body: done}
	ours, theirs := net.Pipe()
	defer ours.Close()
	daemon, theirDaemon := net.Pipe()
	defer theirDaemon.Close()
	n.conn = daemon
	go func() { // ends with the daemon's answer
		var q launch.NodeRequest
		if err := json.NewDecoder(theirDaemon).Decode(&q); err != nil || q.End == nil || q.End.Code != 3 {
			t.Errorf("the node is asked %+v: %v", q, err)
		}
		n.answered(launch.NodeReply{Seq: q.Seq})
	}()
	over := make(chan error, 1)
	go func() { over <- s.follow(&launch.Conn{Conn: ours}, c, &launch.Layout{Step: 7}, frames); ours.Close() }()
	if _, err := theirs.Read(make([]byte, 1)); err != nil { // what is sent waits for this
		t.Fatal(err)
	}
	s.steps.mu.Lock()
	left := c.left
	s.steps.mu.Unlock()
	if !left {
		t.Error("srun is told while its cores are still in use")
	}
	if _, err := io.Copy(io.Discard, theirs); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}
