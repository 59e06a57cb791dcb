package pmix

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// Config is what a server serves.
type Config struct {
	Space  string // the name of the step that its tasks show to be let in: nobody else may know it
	Job    string // the name of the step for people
	Layout launch.Layout
	Own    int      // index of this rank in Layout.Placed
	Nodes  []string // names, beside Layout.Placed

	Send  func(task int, m launch.PMIx)      // to srun
	Print func(task int, err bool, s string) // on a task's output or errors
}

// Server serves the tasks of one rank of a step.
type Server struct {
	c   Config
	at  net.Listener
	own map[int]bool // tasks here

	mu     sync.Mutex
	closed bool
	peers  map[*peer]bool
	data   map[int]*put      // what tasks have put, also elsewhere
	size   int               // of data, in bytes
	fences map[string]*fence // at which somebody waits
	ended  map[int]bool      // tasks here
	gone   bool              // the step was told to end

	waits map[*want]bool   // for a task here
	asked map[uint64]*want // elsewhere
	last  uint64           // key of asked

	facts map[factsKind][]byte // about the job, as they are sent

	outbox []func()      // what is to be said to srun, in order
	ready  chan struct{} // that something is in outbox; closed by Close
}

// Listen makes a server that listens for its tasks.
func Listen(c Config) (*Server, error) {
	at, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve PMIx: %w", err)
	}
	s := newServer(c)
	s.at = at
	go s.accept() // ends with the listener
	go s.tell()   // ends by Close
	return s, nil
}

func newServer(c Config) *Server {
	s := &Server{c: c, own: map[int]bool{}, peers: map[*peer]bool{}, data: map[int]*put{}, fences: map[string]*fence{},
		ended: map[int]bool{}, waits: map[*want]bool{}, asked: map[uint64]*want{}, facts: map[factsKind][]byte{}, ready: make(chan struct{}, 1)}
	for _, t := range c.Layout.Placed[c.Own].Tasks {
		s.own[t.ID] = true
	}
	return s
}

// version is that of the library whose server this one is like. Clients ask for
// what such a server would know.
const version = "4.2.2"

// Names are the variables that tasks have of a server. None of them means anything
// in another step.
var Names = []string{"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41", "PMIX_SERVER_URI51",
	"PMIX_SECURITY_MODE", "PMIX_PTL_MODULE", "PMIX_BFROP_BUFFER_TYPE", "PMIX_GDS_MODULE", "PMIX_HOSTNAME", "PMIX_VERSION", "PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR"}

// Env are the variables of a task. A library takes the newest format that it knows.
func (s *Server) Env(task int) map[string]string {
	uri := fmt.Sprintf("gbatch.%s.%d;tcp4://%s", strings.ReplaceAll(s.c.Job, ".", "-"), s.c.Own, s.at.Addr())
	return map[string]string{
		"PMIX_NAMESPACE": s.c.Space, "PMIX_RANK": strconv.Itoa(task), "PMIX_HOSTNAME": s.c.Nodes[s.c.Own], "PMIX_VERSION": version,
		"PMIX_SERVER_URI41": uri, "PMIX_SERVER_URI4": uri, "PMIX_SERVER_URI3": uri, "PMIX_SERVER_URI21": uri,
		"PMIX_SECURITY_MODE": "native", "PMIX_PTL_MODULE": "tcp", "PMIX_BFROP_BUFFER_TYPE": "PMIX_BFROP_BUFFER_NON_DESC", "PMIX_GDS_MODULE": "hash",
		"PMIX_SERVER_TMPDIR": "/tmp", "PMIX_SYSTEM_TMPDIR": "/tmp",
	}
}

// Close ends all connections.
func (s *Server) Close() {
	if s.at != nil {
		s.at.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.ready)
	for p := range s.peers {
		p.conn.Close()
	}
	for w := range s.waits {
		w.stop()
	}
}

// Ended says that a task here has ended. Those that wait for it would for ever.
func (s *Server) Ended(task int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[task] = true
	for _, f := range s.fences {
		s.stuck(f)
	}
	for w := range s.waits {
		if w.task == task {
			s.answer(w, wire.NotFound, nil)
		}
	}
}

// Receive takes what srun says.
func (s *Server) Receive(m launch.PMIx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Fence != nil:
		s.passed(*m.Fence)
	case m.Want != nil && m.Want.Done:
		s.answered(*m.Want)
	case m.Want != nil:
		s.wanted(*m.Want)
	}
}

// abort has srun end the step, once.
func (s *Server) abort(task int, code *int, text string) {
	if s.closed || s.gone {
		return
	}
	s.gone = true
	s.send(task, launch.PMIx{Abort: &launch.PMIxAbort{Code: code, Text: text}})
}

// send has srun told something, without waiting for it.
func (s *Server) send(task int, m launch.PMIx) { s.later(func() { s.c.Send(task, m) }) }

func (s *Server) later(do func()) {
	if s.closed {
		return
	}
	s.outbox = append(s.outbox, do)
	select {
	case s.ready <- struct{}{}:
	default: // it is told already
	}
}

// tell says to srun what waits, until the server is closed.
func (s *Server) tell() {
	for range s.ready {
		s.mu.Lock()
		list := s.outbox
		s.outbox = nil
		s.mu.Unlock()
		for _, do := range list {
			do()
		}
	}
}

// lost ends the step for a task that has gone without good-bye: others that wait
// for it, or will, would for ever.
func (s *Server) lost(task int) { s.abort(task, nil, "has ended before MPI_Finalize") }

// tasks are the tasks that a list of processes means, in order.
func (s *Server) tasks(procs []wire.Proc) ([]int, bool) {
	var list []int
	for _, p := range procs {
		switch {
		case p.Space != s.c.Space:
			return nil, false
		case p.Rank == wire.AllRanks:
			for id := range s.c.Layout.Tasks {
				list = append(list, id)
			}
		case p.Rank == wire.NodeRanks || p.Rank == wire.NodePeers:
			for id := range s.own {
				list = append(list, id)
			}
		case p.Rank < uint32(s.c.Layout.Tasks):
			list = append(list, int(p.Rank))
		default:
			return nil, false
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list, len(list) > 0
}

// helloTime bounds how long somebody may take to say who it is, and maxPeers how
// many are served at a time beside one for each task: a task's children may be
// clients too.
const (
	helloTime = 10 * time.Second
	maxPeers  = 256
)

func (s *Server) accept() {
	places := make(chan struct{}, maxPeers+4*len(s.own))
	for {
		conn, err := s.at.Accept()
		if err != nil {
			return
		}
		places <- struct{}{}
		go func() { // ends with the connection
			defer func() { <-places }()
			s.serve(conn)
		}()
	}
}
