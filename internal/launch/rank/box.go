package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"gbatch/internal/launch"
	"gbatch/oci/message"
)

// box is a container that the node made for steps in an image of their own. Their srun
// speaks to the program in there; here is known which connections it has. It ends when
// there is none.
type box struct {
	name  string        // empty: it is one step's
	begun chan struct{} // closed when it takes tasks, or does not begin
	err   error         // then
	conn  *net.UnixConn // likewise

	sending sync.Mutex // held for all lines of a connection

	// Guarded by the server's mu.
	open map[int]handed
	next int
	held int // those that are about to be handed over
}

// handed is a connection that was handed over and has not ended.
type handed struct {
	step   uint32
	starts bool // it is the step's srun
}

// endedBy is the signal that ended a step whose container had not begun.
type endedBy syscall.Signal

func (e endedBy) Error() string { return syscall.Signal(e).String() }

// startIn has a step's tasks begin in a container of their own, and hands srun's connection
// over.
func (s *Server) startIn(conn *launch.Conn, f launch.Frame) error {
	o, err := s.ordered(f)
	switch {
	case err != nil:
		return err
	case s.inside:
		return s.execute(conn, o)
	case o.In == nil:
		return errors.New("srun names no container")
	}
	s.boxed(1)
	end := make(chan syscall.Signal, 1) // has room
	watched := conn.Watch(func(f launch.Frame, err error) {
		sig := launch.Signal{Number: int(syscall.SIGKILL)} // srun has gone
		if err == nil && (f.Kind != launch.KindSignal || f.Read(&sig) != nil || sig.Number == int(syscall.SIGCONT)) {
			return
		}
		select {
		case end <- syscall.Signal(sig.Number):
		default:
		}
	})
	b, joined, err := s.box(o.In, end)
	read := watched.Stop()
	if err != nil {
		s.boxed(-1)
	} else {
		if joined && len(o.In.Mounts) > 0 {
			_ = conn.Send(launch.KindErrors, o.Layout.Placed[o.Own].Tasks[0].ID, fmt.Sprintf("slurmstepd: container %s runs already, with its mounts and not with those of this step\n", b.name))
		}
		err = s.handOver(b, conn, handed{o.Layout.Step, true}, append(f.Bytes(), read...))
	}
	if err != nil {
		refuse(conn, o, err)
	}
	return nil
}

// startBeside has a step's tasks begin where those of another are: in its container, or in
// the job's.
func (s *Server) startBeside(conn *launch.Conn, f launch.Frame) error {
	o, err := s.ordered(f)
	switch {
	case err != nil:
		return err
	case s.inside:
		return s.execute(conn, o)
	case o.Beside == nil:
		return errors.New("srun names no step")
	}
	s.mu.Lock()
	b, here := s.holdStep(*o.Beside), s.running[*o.Beside] != nil
	s.mu.Unlock()
	switch {
	case b == nil && !here:
		return fmt.Errorf("step %d does not run on this node", *o.Beside)
	case b == nil:
		return s.execute(conn, o)
	}
	s.boxed(1)
	if err := s.handOver(b, conn, handed{o.Layout.Step, true}, append(f.Bytes(), conn.Buffered()...)); err != nil {
		refuse(conn, o, err)
	}
	return nil
}

// refuse ends tasks that have not begun.
func refuse(conn *launch.Conn, o launch.Start, err error) {
	x := launch.Exit{Code: 1}
	tasks := o.Layout.Placed[o.Own].Tasks
	if sig, is := errors.AsType[endedBy](err); is {
		x = launch.Exit{Code: 128 + int(sig), Signal: int(sig)}
	} else if len(tasks) > 0 {
		_ = conn.Send(launch.KindErrors, tasks[0].ID, fmt.Sprintf("slurmstepd: error: container of the step: %v\n", err))
	}
	for _, t := range tasks {
		_ = conn.Send(launch.KindExit, t.ID, x)
	}
	_ = conn.Send(launch.KindOver, 0, nil)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, _ = io.Copy(io.Discard, conn.Conn) // srun closes when it has read that
}

// box is the container that runs by a name, or a new one. It stays until something was
// handed over.
func (s *Server) box(q *launch.Container, end <-chan syscall.Signal) (b *box, joined bool, err error) {
	for {
		b, joined = s.take(q.Name)
		if joined {
			select {
			case <-b.begun:
			case sig := <-end:
				s.drop(b, func() { b.held-- })
				return nil, false, endedBy(sig)
			}
			if b.err != nil { // that was the other step's
				continue
			}
			return b, true, nil
		}
		var in *message.Reader
		b.conn, in, b.err = ask(q, end)
		close(b.begun)
		if b.err != nil {
			s.mu.Lock()
			delete(s.boxes, b)
			s.mu.Unlock()
			return nil, false, b.err
		}
		go s.listenBox(b, in) // ends with the container
		return b, false, nil
	}
}

// take holds a container of that name, or one that is yet to be made.
func (s *Server) take(name string) (b *box, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.boxes {
		if name != "" && b.name == name {
			b.held++
			return b, true
		}
	}
	b = &box{name: name, begun: make(chan struct{}), open: map[int]handed{}, held: 1}
	s.boxes[b] = true
	return b, false
}

// drop takes in that a container has something less, and ends it if that was all.
func (s *Server) drop(b *box, less func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	less()
	if len(b.open) == 0 && b.held == 0 && s.boxes[b] {
		delete(s.boxes, b)
		if b.conn != nil {
			b.conn.Close()
		}
	}
}

// holdStep holds the container in which a step is; nil: it is in none. It is called with mu
// held.
func (s *Server) holdStep(step uint32) *box {
	for b := range s.boxes {
		for _, h := range b.open {
			if h.step == step {
				b.held++
				return b
			}
		}
	}
	return nil
}

// over takes in that a connection has ended, or could not be handed over.
func (s *Server) over(b *box, id int) {
	var h handed
	s.drop(b, func() { h = b.open[id]; delete(b.open, id) })
	if h.starts {
		s.boxed(-1)
	}
}

// listenBox takes in what of a container's has ended.
func (s *Server) listenBox(b *box, in *message.Reader) {
	for {
		line, files, err := in.Next()
		message.CloseAll(files)
		var r launch.ContainerReply
		if err != nil || json.Unmarshal(line, &r) != nil {
			break
		}
		s.over(b, r.Over)
	}
	s.mu.Lock()
	delete(s.boxes, b)
	var left []int
	for id := range b.open {
		left = append(left, id)
	}
	s.mu.Unlock()
	for _, id := range left {
		s.over(b, id)
	}
	b.conn.Close()
}

// maxRead is how much of what was read goes into one line of a connection that is handed over.
const maxRead = 256 << 10

// handOver gives a connection to the program in a container that is held. From then on it
// counts until it is over, as it is where there is an error.
func (s *Server) handOver(b *box, conn *launch.Conn, h handed, read []byte) error {
	s.mu.Lock()
	b.next++
	id := b.next
	b.open[id] = h
	b.held--
	s.mu.Unlock()
	err := b.send(conn, id, read)
	if err != nil {
		s.over(b, id)
		return fmt.Errorf("it has ended: %w", err)
	}
	return nil
}

func (b *box) send(conn *launch.Conn, id int, read []byte) error {
	raw, ok := conn.Conn.(*net.TCPConn)
	if !ok {
		return errors.New("srun's connection is no socket")
	}
	f, err := raw.File()
	if err != nil {
		return err
	}
	defer f.Close()
	b.sending.Lock()
	defer b.sending.Unlock()
	for len(read) > maxRead {
		if err := message.Send(b.conn, launch.HandOver{ID: id, Read: read[:maxRead]}); err != nil {
			return err
		}
		read = read[maxRead:]
	}
	return message.Send(b.conn, launch.HandOver{ID: id, Read: read, Last: true}, f)
}

// Times of asking the node: between two tries, and until it is taken for one that makes no
// containers.
const (
	askAgain = time.Second
	askTime  = 30 * time.Second
)

// ask has the node make a container. The node may be restarted meanwhile.
func ask(q *launch.Container, end <-chan syscall.Signal) (*net.UnixConn, *message.Reader, error) {
	for begun := time.Now(); ; {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: launch.Containers, Net: "unix"})
		if errors.Is(err, os.ErrNotExist) && time.Since(begun) > askTime {
			return nil, nil, errors.New("the node's gnoded makes none: it is of an older version, or the container of another runtime")
		}
		if err == nil {
			in, answered := message.NewReader(conn), make(chan answer, 1)
			go func() { answered <- askOnce(conn, in, q) }() // has room; ends with the connection
			select {
			case a := <-answered:
				if a.ready {
					return conn, in, nil
				}
				conn.Close()
				if a.refused != nil {
					return nil, nil, a.refused
				}
			case sig := <-end:
				conn.Close()
				return nil, nil, endedBy(sig)
			}
		}
		select {
		case <-time.After(askAgain):
		case sig := <-end:
			return nil, nil, endedBy(sig)
		}
	}
}

// answer is what comes of asking once; the zero value: to ask again.
type answer struct {
	ready   bool
	refused error
}

func askOnce(conn *net.UnixConn, in *message.Reader, q *launch.Container) (a answer) {
	if message.Send(conn, q) != nil {
		return a
	}
	line, files, err := in.Next()
	message.CloseAll(files)
	var r launch.ContainerReply
	if err != nil || json.Unmarshal(line, &r) != nil {
		return a
	}
	if r.Error != "" {
		a.refused = errors.New(r.Error)
	}
	a.ready = r.Ready
	return a
}
