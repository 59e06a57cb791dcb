package rank

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// Server takes tasks for one rank.
type Server struct {
	info  *launch.Info
	steps *steps // of the first rank; else nil
	procs processes
	kills kills
	cpus  []int    // that this container has
	env   []string // the container's own

	mu      sync.Mutex
	begun   map[uint32]bool // steps that were started here: none is twice
	running map[uint32]*group
	live    int           // steps that run
	boxes   map[*box]bool // containers of steps that run

	inside  bool     // this is such a container
	image   []string // the variables that its image sets
	ending  bool     // it was told to end
	code    int      // that it ends with then
	holders int      // of an allocation
}

// maxConns bounds the connections that are served at a time.
const maxConns = 4096

// First is the first process of a rank that waits for tasks. When it is told to
// end it waits for those that run. In the job's first rank, which has it in place
// of a script where somebody outside holds the job, see hold, it has steps end
// before.
func First(info *launch.Info) error {
	l, err := net.Listen("tcp", info.ListenAt())
	if err != nil {
		return fmt.Errorf("take tasks: %w", err)
	}
	return serve(info, l, true)
}

// Beside takes tasks beside a script, by the socket that srun has begun to listen
// on and handed over. It ends with its container, and by no other signal.
func Beside(info *launch.Info) error {
	f := os.NewFile(3, "listener")
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	f.Close()
	return serve(info, l, false)
}

func serve(info *launch.Info, l net.Listener, first bool) (err error) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCHLD, unix.SIGPIPE)
	s, err := newServer(info)
	if err != nil {
		return err
	}
	if info.Rank == 0 {
		s.steps = newSteps(info)
	}
	go s.accept(l) // ends with the process
	for sig := range signals {
		switch sig {
		case unix.SIGCHLD:
			s.procs.reap()
		case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
			if first && s.steps != nil { // an allocation: no script tells its steps to end
				s.release(0)
			} else if first {
				s.count(0, true)
			}
		}
	}
	return nil
}

func newServer(info *launch.Info) (s *Server, err error) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	s = &Server{info: info, begun: map[uint32]bool{}, running: map[uint32]*group{}, boxes: map[*box]bool{}, env: os.Environ()}
	s.procs.running, s.kills.read = map[int]chan ending{}, readKills
	s.cpus, err = ownCPUs()
	return s, err
}

// boxed counts the steps whose tasks are in containers of their own.
func (s *Server) boxed(n int) {
	if n > 0 {
		s.kills.begin()
		s.kills.task()
	} else {
		s.kills.ended(false)
		s.kills.end()
	}
	s.count(n, false)
}

// count counts the steps that run here. When it is to end it does so once there
// are none.
func (s *Server) count(n int, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live += n
	s.ending = s.ending || end
	if s.ending && s.live == 0 {
		os.Exit(s.code)
	}
}

func (s *Server) accept(l net.Listener) {
	places := make(chan struct{}, maxConns)
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "gbatch-rank: accept:", err)
			os.Exit(1)
		}
		places <- struct{}{}
		go func() { // ends with the connection
			defer func() { <-places }()
			s.serve(c)
		}()
	}
}

func (s *Server) serve(raw net.Conn) {
	c, err := s.info.Accept(raw)
	if err != nil {
		return
	}
	s.talk(c)
}

// talk serves one connection to its end.
func (s *Server) talk(c *launch.Conn) {
	defer c.Close()
	f, err := c.Next()
	if err != nil {
		return
	}
	switch f.Kind {
	case launch.KindStartIn:
		err = s.startIn(c, f)
	case launch.KindBeside:
		err = s.startBeside(c, f)
	case launch.KindReserve:
		err = s.reserve(c, f)
	case launch.KindStart:
		err = s.start(c, f)
	case launch.KindAttach:
		err = s.attach(c, f)
	case launch.KindHold:
		err = s.hold(c)
	default:
		err = fmt.Errorf("srun is of another version: it begins with %q", f.Kind)
	}
	if err != nil {
		_ = c.Send(launch.KindError, 0, err.Error())
	}
}

// ownCPUs are the cores of this container.
func ownCPUs() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("find out which cores there are: %w", err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}
