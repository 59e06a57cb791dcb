package rank

import (
	"errors"
	"fmt"
	"sync"

	"gbatch/internal/launch"
)

// steps are those of the job, in its first rank: who has which cores and GPUs,
// and who waits for some. The node records and numbers them; what is kept here is
// for as long as the container.
type steps struct {
	info *launch.Info
	node *node

	mu      sync.Mutex
	free    []launch.Free
	waiting []*claim // in the order that they came
	running map[uint32]*claim
	early   map[uint32]bool // canceled before they ran here: the order can come before the number does
}

// claim is one srun's.
type claim struct {
	q       launch.Request
	granted chan *launch.Layout // has room
	refused chan error          // likewise
	cancel  chan struct{}       // closed when somebody cancels the step
	closed  bool
	left    bool // it was taken back
}

func newSteps(info *launch.Info) *steps {
	s := &steps{info: info, free: info.AllFree(), running: map[uint32]*claim{}, early: map[uint32]bool{}}
	s.node = newNode(s.cancel)
	return s
}

// claim tries to get what a step asks for, and has it wait if that is in use.
func (s *steps) claim(q launch.Request) (c *claim, waits bool, err error) {
	c = &claim{q: q, granted: make(chan *launch.Layout, 1), refused: make(chan error, 1), cancel: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.info.Plan(s.free, q)
	switch {
	case errors.Is(err, launch.ErrBusy) && !q.Immediate:
		s.waiting = append(s.waiting, c)
		return c, true, nil
	case err != nil:
		return nil, false, err
	}
	c.granted <- l
	return c, false, nil
}

// leave takes a step's claim back, and lets those go on that have waited for it. It
// may be called again.
func (s *steps) leave(c *claim, l *launch.Layout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	if l == nil { // it waits, or was granted meanwhile
		select {
		case l = <-c.granted:
		default:
		}
	}
	if l != nil {
		launch.Release(s.free, l, c.q)
		delete(s.running, l.Step)
	}
	var still []*claim
	for _, w := range s.waiting {
		if w == c {
			continue
		}
		l, err := s.info.Plan(s.free, w.q)
		switch {
		case errors.Is(err, launch.ErrBusy):
			still = append(still, w)
		case err != nil:
			w.refused <- err
		default:
			w.granted <- l
		}
	}
	s.waiting = still
}

// runs notes that a claim is a step now.
func (s *steps) runs(c *claim, number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[number] = c
	if s.early[number] {
		delete(s.early, number)
		c.end()
	}
}

// end is called with mu of the steps held.
func (c *claim) end() {
	if !c.closed {
		c.closed = true
		close(c.cancel)
	}
}

// cancel tells the srun of a step to end it.
func (s *steps) cancel(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.running[number]; c != nil {
		c.end()
	} else {
		s.early[number] = true
	}
}

// cancelAll tells all to end.
func (s *steps) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.running {
		c.end()
	}
}

// reserve serves one srun: it waits for its turn, is given a number and where its
// tasks run, and says how they ended.
func (s *Server) reserve(conn *launch.Conn, f launch.Frame) error {
	if s.steps == nil {
		return errors.New("steps are begun at the job's first rank")
	}
	var q launch.Request
	if err := f.Read(&q); err != nil {
		return err
	}
	frames := make(chan launch.Frame)
	over := make(chan struct{})
	defer close(over)
	go func() { // ends with the connection
		defer close(frames)
		for {
			f, err := conn.Next()
			if err != nil {
				return
			}
			select {
			case frames <- f:
			case <-over:
				return
			}
		}
	}()
	c, waits, err := s.steps.claim(q)
	if err != nil {
		return err
	}
	if waits {
		_ = conn.Send(launch.KindWait, 0, launch.ErrBusy.Error())
	}
	var l *launch.Layout
	select {
	case l = <-c.granted:
	case err := <-c.refused:
		return err
	case <-frames: // srun has gone
		s.steps.leave(c, nil)
		return nil
	}
	defer func() { s.steps.leave(c, l) }()
	if l.Step, err = s.steps.node.begin(q, l); err != nil {
		return err
	}
	s.steps.runs(c, l.Step)
	if err := conn.Send(launch.KindGrant, 0, l); err != nil {
		s.steps.node.end(l.Step, launch.Done{Code: 1}, s.kills.ofSteps())
		return nil
	}
	return s.follow(conn, c, l, frames)
}

// follow waits for a step's end, has it recorded and lets others have what it had,
// before srun is told so: the script's next step must not find it in use.
func (s *Server) follow(conn *launch.Conn, c *claim, l *launch.Layout, frames <-chan launch.Frame) error {
	cancel := c.cancel
	for {
		select {
		case <-cancel:
			cancel = nil
			_ = conn.Send(launch.KindCancel, 0, nil)
		case f, ok := <-frames:
			done := launch.Done{Code: 128 + 9, Signal: 9} // srun was killed
			if ok {
				if f.Kind != launch.KindDone {
					return fmt.Errorf("want the step's end, have %q", f.Kind)
				}
				done = launch.Done{}
				if err := f.Read(&done); err != nil {
					return err
				}
			}
			s.steps.node.end(l.Step, done, s.kills.ofSteps())
			s.steps.leave(c, l)
			if ok {
				_ = conn.Send(launch.KindNoted, 0, nil)
			}
			return nil
		}
	}
}
