package rank

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"gbatch/internal/launch"
)

// node is the connection to the daemon of the first rank's node. The daemon may
// be restarted at any time: what was asked and not answered is asked again.
type node struct {
	cancel func(step uint32)

	mu      sync.Mutex
	seq     uint64
	pending map[uint64]launch.NodeRequest // asked and not answered
	answers map[uint64]chan launch.NodeReply
	conn    net.Conn      // nil: there is none
	asked   chan struct{} // has room: somebody wants a connection
}

func newNode(cancel func(uint32)) *node {
	n := &node{cancel: cancel, pending: map[uint64]launch.NodeRequest{}, answers: map[uint64]chan launch.NodeReply{}, asked: make(chan struct{}, 1)}
	n.asked <- struct{}{}
	go n.run() // ends with the process
	return n
}

// begin has a step recorded, and returns its number.
func (n *node) begin(q launch.Request, l *launch.Layout) (uint32, error) {
	b := launch.NodeBegin{Key: rand.Text(), Name: q.Name, Image: q.Image, Tasks: l.Tasks}
	for _, at := range l.Placed {
		b.Ranks = append(b.Ranks, at.Rank)
		gpus := map[int]bool{}
		for _, t := range at.Tasks {
			b.CPUs += len(t.CPUs)
			for _, g := range t.GPUs {
				gpus[g] = true
			}
		}
		b.GPUs += len(gpus)
	}
	r := <-n.ask(launch.NodeRequest{Begin: &b})
	if r.Error != "" {
		return 0, errors.New(r.Error)
	}
	return r.Step, nil
}

// endWait is how long srun waits for its end to be recorded. After that the daemon
// is told later, or the step ends with the job.
const endWait = 20 * time.Second

func (n *node) end(step uint32, d launch.Done, killed uint64) {
	select {
	case <-n.ask(launch.NodeRequest{End: &launch.NodeEnd{Step: step, Done: d, Killed: killed}}):
	case <-time.After(endWait):
	}
}

func (n *node) ask(q launch.NodeRequest) <-chan launch.NodeReply {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	q.Seq = n.seq
	answer := make(chan launch.NodeReply, 1)
	n.pending[q.Seq], n.answers[q.Seq] = q, answer
	if n.conn != nil {
		n.send(q)
	}
	return answer
}

// send is called with mu held.
func (n *node) send(q launch.NodeRequest) {
	b, err := json.Marshal(q)
	if err == nil {
		_ = n.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, err = n.conn.Write(append(b, '\n'))
	}
	if err != nil {
		n.conn.Close() // run asks again
	}
}

// run keeps a connection, and passes on what comes by it.
func (n *node) run() {
	for {
		conn, err := net.Dial("unix", launch.Socket)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		n.mu.Lock()
		n.conn = conn
		for _, q := range n.pending {
			n.send(q)
		}
		n.mu.Unlock()
		if err := n.listen(conn); err != nil {
			fmt.Println("gbatch-rank: node:", err)
		}
		n.mu.Lock()
		n.conn = nil
		n.mu.Unlock()
		conn.Close()
		time.Sleep(100 * time.Millisecond)
	}
}

func (n *node) listen(conn net.Conn) error {
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r launch.NodeReply
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		for _, step := range r.Cancel {
			n.cancel(step)
		}
		if r.Seq > 0 {
			n.answered(r)
		}
	}
	return nil
}

func (n *node) answered(r launch.NodeReply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Later {
		if q, ok := n.pending[r.Seq]; ok {
			time.AfterFunc(time.Second, func() { n.again(q) })
		}
		return
	}
	if answer := n.answers[r.Seq]; answer != nil {
		answer <- r // has room
	}
	delete(n.pending, r.Seq)
	delete(n.answers, r.Seq)
}

func (n *node) again(q launch.NodeRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, still := n.pending[q.Seq]; still && n.conn != nil {
		n.send(q)
	}
}
