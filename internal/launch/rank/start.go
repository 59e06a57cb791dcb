package rank

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix"
)

// group are the tasks of one step on this rank.
type group struct {
	s      *Server
	conn   *launch.Conn
	order  launch.Start
	placed launch.Placed
	tasks  []*task // in the order of placed
	input  chan launch.Frame
	output sync.WaitGroup // readers of what tasks write
	pmi    *pmi           // nil: none
	pmix   *pmix.Server   // nil: none

	feeding  sync.Mutex // held while tasks are given input
	watchers watchers
	killed   uint64 // what the memory limit had ended in the container before
}

// task is one of them.
type task struct {
	launch.Task
	pid   int       // 0: it did not begin
	stdin io.Writer // nil: none that srun feeds
	files []*os.File
	tty   *os.File // the user's side of its terminal; nil: it has none

	mu    sync.Mutex
	ended bool
}

// start begins the tasks that an srun orders, and stays until they have ended.
func (s *Server) start(conn *launch.Conn, f launch.Frame) error {
	order, err := s.ordered(f)
	if err != nil {
		return err
	}
	return s.execute(conn, order)
}

// ordered reads what is to start here.
func (s *Server) ordered(f launch.Frame) (o launch.Start, err error) {
	if err := f.Read(&o); err != nil {
		return o, err
	}
	if o.Own < 0 || o.Own >= len(o.Layout.Placed) || o.Layout.Placed[o.Own].Rank != s.info.Rank {
		return o, fmt.Errorf("rank %d is not the one that was meant", s.info.Rank)
	}
	s.mu.Lock()
	twice := s.begun[o.Layout.Step]
	s.begun[o.Layout.Step] = true
	s.mu.Unlock()
	if twice {
		return o, fmt.Errorf("step %d was started here before", o.Layout.Step)
	}
	return o, nil
}

// execute takes the tasks of an order from their begin to their end.
func (s *Server) execute(conn *launch.Conn, o launch.Start) error {
	g := &group{s: s, conn: conn, order: o, placed: o.Layout.Placed[o.Own], input: make(chan launch.Frame, inputWindow)}
	if o.PMIx {
		if err := g.servePMIx(); err != nil {
			return err
		}
		defer g.pmix.Close()
	}
	s.count(1, false)
	defer s.count(-1, false)
	g.run()
	return nil
}

func (g *group) run() {
	g.killed = g.s.kills.begin()
	if g.order.PMI != "" {
		g.pmi = newPMI(g)
	}
	var running sync.WaitGroup
	for _, placed := range g.placed.Tasks {
		t := &task{Task: placed}
		g.tasks = append(g.tasks, t)
		g.s.kills.task()
		ended, err := g.begin(t)
		if err != nil {
			g.s.kills.ended(false)
			g.tellEnd(t, exitOfStart(err))
			continue
		}
		running.Go(func() { // awaited below
			end := <-ended
			t.mu.Lock()
			t.ended = true
			t.mu.Unlock()
			x := exitOf(end)
			g.s.kills.ended(x.Signal == int(unix.SIGKILL))
			n, only := g.s.kills.since(g.killed)
			x.OOM = n > 0 && (only || x.Signal == int(unix.SIGKILL))
			g.tellEnd(t, x)
		})
	}
	defer g.present()()
	gone := make(chan struct{})
	go g.listen(gone) // ends with the connection, which serve closes
	go g.feed()       // ends when listen does
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }() // ends with the tasks
	select {
	case <-all:
	case <-gone:
		g.abandon(all)
	}
	g.clear()
	g.sayKilled()
	g.s.kills.end()
	_ = g.send(launch.KindOver, 0, nil)
	// srun closes when it has read that.
	select {
	case <-gone:
	case <-time.After(time.Minute):
	}
}

// sayKilled tells what the memory limit has ended, in Slurm's words.
func (g *group) sayKilled() {
	n, only := g.s.kills.since(g.killed)
	if n == 0 || !only || len(g.tasks) == 0 {
		return
	}
	events := "events"
	if n == 1 {
		events = "event"
	}
	_ = g.send(launch.KindErrors, g.tasks[0].ID, fmt.Sprintf("slurmstepd: error: Detected %d oom_kill %s in StepId=%d.%d. Some of the step tasks have been OOM Killed.\n", n, events, g.s.info.Job, g.order.Layout.Step))
}

// tellEnd says that a task has ended, also to those that wait for it.
func (g *group) tellEnd(t *task, x launch.Exit) {
	_ = g.send(launch.KindExit, t.ID, x)
	if g.pmix != nil {
		g.pmix.Ended(t.ID)
	}
}

// abandonGrace is how long tasks have to end whose srun has gone.
const abandonGrace = 3 * time.Second

func (g *group) abandon(all <-chan struct{}) {
	g.signal(unix.SIGTERM, nil)
	select {
	case <-all:
	case <-time.After(abandonGrace):
		g.signal(unix.SIGKILL, nil)
		<-all
	}
}

// clear ends what the tasks have left behind, and waits until all that was
// written is on its way.
func (g *group) clear() {
	leaders := map[int]bool{}
	for _, t := range g.tasks {
		if t.pid > 0 {
			leaders[t.pid] = true
		}
	}
	killSessions(leaders)
	done := make(chan struct{})
	go func() { g.output.Wait(); close(done) }() // ends when the pipes do
	select {
	case <-done:
	case <-time.After(5 * time.Second): // somebody outside of the sessions has them
	}
	for _, t := range g.tasks {
		for _, f := range t.files {
			f.Close()
		}
	}
	if g.pmi != nil {
		g.pmi.close()
	}
}

// begin begins one task.
func (g *group) begin(t *task) (<-chan ending, error) {
	args := g.order.Args
	if g.order.Programs != nil {
		line, ok := g.order.Programs[t.ID]
		if !ok {
			line, ok = g.order.Programs[launch.AnyTask]
		}
		if !ok {
			return nil, fmt.Errorf("no program is named for task %d", t.ID)
		}
		var err error
		if args, err = taskWords(line, t.ID); err != nil {
			return nil, err
		}
	}
	env := g.environment(t)
	dir := g.order.Dir
	if dir == "" {
		dir, _ = os.Getwd() // an error: empty, and so /
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		_ = g.conn.Send(launch.KindErrors, t.ID, fmt.Sprintf("slurmstepd: error: couldn't chdir to `%s': No such file or directory: going to / instead\n", dir))
		dir = "/"
	}
	path, err := lookPath(args[0], dir, env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, args[0]), err)
	}
	args = append([]string{path}, args[1:]...) // programs find their files by it, as Slurm's do
	files, err := g.stdio(t, dir)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	p := program{path: path, args: args, cpus: g.affinity(t), umask: g.order.Umask, limits: g.order.Limits}
	p.attr = syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: t.tty != nil}}
	if g.pmi != nil {
		theirs, err := g.pmi.connect(t)
		if err != nil {
			return nil, err
		}
		files = append(files, theirs)
		p.attr.Env = append(p.attr.Env, g.pmi.env(t)...)
	}
	for _, f := range files {
		p.attr.Files = append(p.attr.Files, f.Fd())
	}
	pid, ended, err := g.s.procs.begin(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.pid = pid
	return ended, nil
}

// affinity are the cores of a task; nil: all of the rank.
func (g *group) affinity(t *task) (list []int) {
	if !g.order.Pinned {
		return nil
	}
	for _, c := range t.CPUs {
		if c < len(g.s.cpus) {
			list = append(list, g.s.cpus[c])
		}
	}
	return list
}

// listen takes what srun says. It closes gone when srun has.
func (g *group) listen(gone chan<- struct{}) {
	defer close(gone)
	defer close(g.input)
	for {
		f, err := g.conn.Next()
		if err != nil {
			return
		}
		switch f.Kind {
		case launch.KindInput, launch.KindInputEnd:
			g.input <- f // has room for what srun may send
		case launch.KindSignal:
			var s launch.Signal
			if f.Read(&s) != nil {
				return
			}
			var only *int
			if s.Only {
				only = new(int(f.Task))
			}
			g.signal(syscall.Signal(s.Number), only)
		case launch.KindSize:
			var size launch.Size
			if f.Read(&size) == nil {
				g.resize(size)
			}
		case launch.KindPMI:
			if g.pmi != nil {
				g.pmi.receive(f)
			}
		case launch.KindPMIx:
			g.receivePMIx(f)
		}
	}
}

// signal sends one to the tasks' process groups.
func (g *group) signal(sig syscall.Signal, only *int) {
	for _, t := range g.tasks {
		t.mu.Lock()
		if t.pid > 0 && !t.ended && (only == nil || *only == t.ID) {
			_ = unix.Kill(-t.pid, sig)
			if t.tty != nil && sig != unix.SIGKILL {
				_ = unix.Kill(-t.pid, unix.SIGCONT)
			}
		}
		t.mu.Unlock()
	}
	if sig == unix.SIGKILL && only == nil {
		leaders := map[int]bool{}
		for _, t := range g.tasks {
			leaders[t.pid] = t.pid > 0
		}
		killSessions(leaders)
	}
}

// exitOf is an end in our words.
func exitOf(e ending) launch.Exit {
	if s := e.status; s.Signaled() {
		return launch.Exit{Code: 128 + int(s.Signal()), Signal: int(s.Signal()), Core: s.CoreDump(), Use: e.use}
	}
	return launch.Exit{Code: e.status.ExitStatus(), Use: e.use}
}

// exitOfStart is how a task ends that could not begin, with the codes of shells.
func exitOfStart(err error) launch.Exit {
	e := launch.Exit{Code: 1, Error: err.Error()}
	switch {
	case errors.Is(err, syscall.ENOENT):
		e.Code = 2
	case errors.Is(err, syscall.EACCES):
		e.Code = 13
	}
	return e
}

func itoa(n int) string { return strconv.Itoa(n) }
