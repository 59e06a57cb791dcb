package rank

import (
	"errors"
	"fmt"
	"sync"

	"gbatch/internal/launch"
)

// watchers are those who read along what the tasks of a rank write, and may
// write to them: sattach. None of them holds up the tasks: one that reads too
// slowly loses its place.
type watchers struct {
	mu   sync.Mutex
	list []*watcher
	over bool // the step is
}

// watcher is one of them.
type watcher struct {
	frames chan launch.Frame // closed at the end, under the watchers' mu
	late   bool              // it was not read in time; set before frames is closed
}

const (
	maxWatchers   = 16
	watcherFrames = 128 // at most launch.ChunkBytes each
)

// attach lets somebody read along a step that runs here, until it ends.
func (s *Server) attach(conn *launch.Conn, f launch.Frame) error {
	var a launch.Attach
	if err := f.Read(&a); err != nil {
		return err
	}
	s.mu.Lock()
	g, b := s.running[a.Step], s.holdStep(a.Step)
	s.mu.Unlock()
	if b != nil {
		return s.handOver(b, conn, handed{step: a.Step}, append(f.Bytes(), conn.Buffered()...))
	}
	if g == nil {
		return fmt.Errorf("step %d does not run here", a.Step)
	}
	w, err := g.watchers.join()
	if err != nil {
		return err
	}
	defer g.watchers.leave(w)
	if err := conn.Send(launch.KindGrant, 0, g.order.Layout); err != nil {
		return nil // it has gone
	}
	gone := make(chan struct{})
	go g.obey(conn, gone) // ends with the connection, which serve closes, or with the tasks that it writes to
	for {
		select {
		case f, more := <-w.frames:
			switch {
			case more && conn.Send(f.Kind, int(f.Task), f.Body) != nil:
				return nil
			case !more && w.late:
				return errors.New("it was not read in time, and some of the output is lost here: attach again")
			case !more:
				return nil
			}
		case <-gone:
			return nil
		}
	}
}

// obey gives the tasks what somebody attached writes. That there is no more of it
// means nothing to them: srun, or another, may have more.
func (g *group) obey(conn *launch.Conn, gone chan<- struct{}) {
	defer close(gone)
	for {
		f, err := conn.Next()
		if err != nil {
			return
		}
		if f.Kind == launch.KindInput {
			g.give(f)
		}
	}
}

// present makes the step one that can be attached to. What it returns ends that.
func (g *group) present() (end func()) {
	step := g.order.Layout.Step
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.s.running[step] = g
	return func() {
		g.s.mu.Lock()
		delete(g.s.running, step)
		g.s.mu.Unlock()
		g.watchers.end()
	}
}

// send sends a frame to srun, and to those who have attached.
func (g *group) send(kind launch.Kind, task int, message any) error {
	body, err := launch.Encode(message)
	if err != nil {
		return err
	}
	g.watchers.tell(launch.Frame{Kind: kind, Task: uint32(task), Body: body})
	return g.conn.Send(kind, task, body)
}

func (w *watchers) join() (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return nil, errors.New("the step has just ended")
	case len(w.list) == maxWatchers:
		return nil, fmt.Errorf("%d are attached to the step, which is the most", maxWatchers)
	}
	one := &watcher{frames: make(chan launch.Frame, watcherFrames)}
	w.list = append(w.list, one)
	return one, nil
}

func (w *watchers) leave(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(one)
}

// drop is called with mu held. One that was dropped before is not in the list.
func (w *watchers) drop(one *watcher) {
	for k, o := range w.list {
		if o == one {
			w.list = append(w.list[:k:k], w.list[k+1:]...)
			close(one.frames)
			return
		}
	}
}

// tell passes a frame on. Its body is the caller's, who uses it again.
func (w *watchers) tell(f launch.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) == 0 {
		return
	}
	f.Body = append([]byte(nil), f.Body...)
	for _, one := range w.list {
		select {
		case one.frames <- f:
		default:
			one.late = true
			w.drop(one)
		}
	}
}

func (w *watchers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, one := range w.list {
		w.drop(one)
	}
}
