package srun

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gbatch/internal/launch"
)

// link is the connection to one rank of the step.
type link struct {
	*launch.Conn
	at   launch.Placed
	name string // of its node

	taken  chan struct{}  // one for each frame of input that was taken
	layout *launch.Layout // as the rank told it to sattach; else nil
	over   bool           // all of it has ended
}

// event is what comes from a rank, or from the first one about the step.
type event struct {
	link  *link // nil: about the step
	frame launch.Frame
	err   error
}

// connect has all ranks start their tasks, at once.
func (r *run) connect() error {
	r.links = make([]*link, len(r.layout.Placed))
	errs := make([]error, len(r.links))
	var all sync.WaitGroup
	for k, at := range r.layout.Placed {
		all.Go(func() { r.links[k], errs[k] = r.link(k, at) }) // awaited below
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, l := range r.links {
			if l != nil {
				l.Close()
			}
		}
		return err
	}
	go r.listen(nil, r.steps) // these end with their connections
	for _, l := range r.links {
		go r.listen(l, l.Conn)
	}
	r.feed()
	return nil
}

func (r *run) link(k int, at launch.Placed) (*link, error) {
	l := &link{at: at, name: r.info.Nodes[at.Rank].Name, taken: make(chan struct{}, inputWindow)}
	for range inputWindow {
		l.taken <- struct{}{}
	}
	var err error
	for end := time.Now().Add(reachTime); ; time.Sleep(20 * time.Millisecond) {
		if l.Conn, err = r.info.Dial(at.Rank, time.Second); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("Task launch failed on node %s: %w", l.name, err)
	}
	start := r.start
	start.Layout, start.Own, start.Extra = *r.layout, k, r.extra()
	if q := r.o.q; q.CPUBind == "" && !q.Overcommit && !q.Overlap && len(at.Tasks)*r.layout.CPUs == r.info.Nodes[at.Rank].CPUs {
		start.Pinned = true // they fill the rank
	}
	kind := launch.KindStart
	switch {
	case start.Beside != nil:
		kind = launch.KindBeside
	case start.In != nil:
		kind = launch.KindStartIn
	}
	return l, l.Send(kind, 0, start)
}

func (r *run) listen(l *link, c *launch.Conn) {
	for {
		f, err := c.Next()
		if l != nil && f.Kind == launch.KindTaken && err == nil {
			l.taken <- struct{}{} // has room for all
			continue
		}
		r.events <- event{l, f, err}
		if err != nil {
			return
		}
	}
}

// inputWindow is how many frames of input a rank may have that its tasks have not
// read.
const inputWindow = 16

// feed passes standard input on to those tasks that are to have it.
func (r *run) feed() {
	if r.start.Input != launch.Stream {
		return
	}
	go func() { // ends with srun
		buf := make([]byte, launch.ChunkBytes/2)
		for {
			n, err := r.input.Read(buf)
			if n > 0 {
				r.pass(launch.KindInput, append([]byte(nil), buf[:n]...))
			}
			if err != nil {
				r.pass(launch.KindInputEnd, nil)
				return
			}
		}
	}()
}

func (r *run) pass(kind launch.Kind, data []byte) {
	for _, l := range r.links {
		if r.inputTask >= 0 && !has(l.at, r.inputTask) {
			continue
		}
		if kind == launch.KindInput {
			<-l.taken
		}
		task := r.inputTask
		if task < 0 {
			task = launch.AllTasks
		}
		_ = l.Send(kind, task, data) // a rank that has gone is told of elsewhere
	}
}

func has(at launch.Placed, task int) bool {
	for _, t := range at.Tasks {
		if t.ID == task {
			return true
		}
	}
	return false
}

// toAll sends a signal to all tasks that run.
func (r *run) toAll(sig int) {
	for _, l := range r.links {
		if !l.over {
			_ = l.Send(launch.KindSignal, 0, launch.Signal{Number: sig})
		}
	}
}
