package noded

import (
	"strings"
	"sync/atomic"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// tunnels has the last number that a test gave to one.
var tunnels atomic.Uint32

// gangOf2 is rank 0 of two, of a dstack task.
func gangOf2(line string) *api.RunOrder {
	return order(line, func(o *api.RunOrder) {
		o.Ranks, o.MasterPort = 2, 20007
		o.Peers = []api.Peer{
			{Node: "n1", Address: "192.0.2.1", GPUs: 8, Inside: "10.214.0.1/16", Tunnel: tunnels.Add(2)},
			{Node: "n2", Address: "192.0.2.2", Inside: "10.214.0.2/16", Tunnel: tunnels.Load() + 1},
		}
		o.Spec.Gbatch = &job.Gbatch{Nodes: 2, Source: "dstack"}
	})
}

// A rank of a gang has everything and runs nothing until it is told to begin.
func TestGangWaits(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	o := gangOf2(`cat $GBATCH_HOSTFILE; echo $DSTACK_NODES_IPS $DSTACK_MASTER_NODE_IP $DSTACK_NODE_RANK of $DSTACK_NODES_NUM, $DSTACK_GPUS_NUM GPUs, $MASTER_ADDR:$MASTER_PORT`)
	s.want(id, o)
	s.phase(id, node.PhaseReady)
	s.begin(id)
	e := s.exit(id)
	want := "10.214.0.1 slots=8\n10.214.0.2\n10.214.0.1 10.214.0.2 10.214.0.1 0 of 2, 8 GPUs, 10.214.0.1:20007\n"
	if out := s.output(id); !e.OK() || out != want {
		t.Errorf("%+v, output %q, want %q", e, out, want)
	}
	s.drop(id)

	// One whose gang fails never ran.
	id = rankID(2)
	s.want(id, gangOf2("echo ran"))
	s.phase(id, node.PhaseReady)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 10_000, Reason: job.NodeFail, Text: "rank 1 was lost"})
	if e := s.exit(id); e.StartedMS != 0 || e.Reason != job.NodeFail || !strings.Contains(e.Message, "rank 1 was lost") {
		t.Errorf("stopped while it waited: %+v", e)
	}
	s.drop(id)
	s.holdsNothing()
}

// More ranks wait than may start at once, and another job starts all the same.
func TestGangsWaitForNoSlot(t *testing.T) {
	s := newSite(t, nil).start()
	n := cap(s.a.slots) + 2
	for i := range n {
		s.want(rankID(i+1), gangOf2("true"))
	}
	for i := range n {
		s.phase(rankID(i+1), node.PhaseReady)
	}
	if e, _ := s.run(rankID(100), order("true")); !e.OK() {
		t.Errorf("%+v", e)
	}
	for i := range n {
		s.begin(rankID(i + 1))
	}
	for i := range n {
		if e := s.exit(rankID(i + 1)); !e.OK() {
			t.Errorf("rank %d: %+v", i, e)
		}
		s.drop(rankID(i + 1))
	}
	s.holdsNothing()
}

// A daemon that is killed while a rank waits has nothing to take over, and the
// rank begins with the next one.
func TestGangOverRestart(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, gangOf2("echo once"))
	s.phase(id, node.PhaseReady)
	p.kill()
	p = s.spawn(1)
	s.begin(id)
	e := s.exit(id)
	if out := s.output(id); !e.OK() || out != "once\n" {
		t.Errorf("%+v, output %q", e, out)
	}
	s.empty()
	p.term()
}
