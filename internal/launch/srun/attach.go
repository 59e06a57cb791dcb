package srun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gbatch/internal/job/nodelist"
	"gbatch/internal/launch"
)

const attachUsage = `Usage: sattach [options] <jobid.stepid>
Shows what the tasks of a step write from now on, and passes standard input on to them.
`

// Attach is sattach in a container of the job. It ends with the step, with the
// highest exit code of the tasks that ended meanwhile; when it is interrupted the
// step goes on.
func Attach(args []string) int {
	info, err := launch.Load()
	if err == nil {
		var code int
		if code, err = attach(info, args); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "sattach: error:", err)
	return 1
}

// attachTable are the options of sattach.
func attachTable() []option {
	task := func(to func(o *options) *string) func(*options, string) error {
		return func(o *options, v string) error {
			if !isNumber(v) {
				return errors.New("want the number of a task")
			}
			*to(o) = v
			return nil
		}
	}
	return []option{
		{long: "input-filter", takes: '=', set: task(func(o *options) *string { return &o.in })},
		{long: "output-filter", takes: '=', set: task(func(o *options) *string { return &o.out })},
		{long: "error-filter", takes: '=', set: task(func(o *options) *string { return &o.errs })},
		flag("label", 'l', "", func(o *options) { o.label = true }),
		flag("layout", 0, "", func(o *options) { o.layout = true }),
		flag("pty", 0, "", func(o *options) { o.pty = true }),
		flag("quiet", 'Q', "", func(o *options) { o.quiet++ }),
		harmless("verbose", 'v', 0),
		flag("help", 'h', "", func(o *options) { o.mpi = "help" }),
		flag("usage", 'u', "", func(o *options) { o.mpi = "help" }),
		flag("version", 'V', "", func(o *options) { o.mpi = "version" }),
		instead("debugger-test", 0, 0, "run the debugger in the container: gexec JOB -- gdb -p PID"),
	}
}

func attach(info *launch.Info, args []string) (code int, err error) {
	o, err := parseBy(attachTable(), args, os.LookupEnv)
	if err != nil {
		return 1, err
	}
	switch {
	case o.mpi == "help":
		_, err := fmt.Print(attachUsage)
		return 0, err
	case o.mpi == "version":
		_, err := fmt.Println("slurm 22.05 (of gbatch)")
		return 0, err
	case len(o.args) != 1:
		return 1, errors.New("need a job step: sattach JOB.STEP")
	}
	id, number, found := strings.Cut(o.args[0], ".")
	step, err := strconv.ParseUint(number, 10, 32)
	switch {
	case number == "batch":
		return 1, fmt.Errorf("the script's output is shown by: glog -f %s", id)
	case !found || err != nil:
		return 1, fmt.Errorf("%q is no job step: want JOB.STEP, as 12.0", o.args[0])
	case id != fmt.Sprint(info.Job) && id != info.ID:
		return 1, fmt.Errorf("job %s is not this one, which is %s", id, info.ID)
	}
	r := &run{info: info, o: o, input: os.Stdin, inputTask: -1, events: make(chan event, 64)}
	r.start.Input = launch.Stream
	if isNumber(o.in) {
		r.inputTask, _ = strconv.Atoi(o.in)
	}
	if err := r.join(uint32(step)); err != nil {
		return 1, err
	}
	if o.layout {
		return 0, r.printLayout()
	}
	return r.watch()
}

// join attaches to all ranks where the step runs.
func (r *run) join(step uint32) error {
	links := make([]*link, len(r.info.Nodes))
	errs := make([]error, len(links))
	var all sync.WaitGroup
	for rank := range links {
		all.Go(func() { links[rank], errs[rank] = r.joinRank(rank, step) }) // awaited below
	}
	all.Wait()
	for _, l := range links {
		if l != nil {
			r.links = append(r.links, l)
		}
	}
	if len(r.links) > 0 {
		return nil
	}
	for _, err := range errs {
		if said := (refused{}); errors.As(err, &said) && !strings.HasSuffix(said.why, "does not run here") {
			return err
		}
	}
	return fmt.Errorf("step %d of job %s does not run: gqueue show %s lists its steps", step, r.info.ID, r.info.ID)
}

// refused is that a rank does not let somebody attach.
type refused struct{ why string }

func (r refused) Error() string { return r.why }

func (r *run) joinRank(rank int, step uint32) (*link, error) {
	c, err := r.info.Dial(rank, 10*time.Second)
	if err != nil {
		return nil, err // nobody has started tasks there
	}
	l := &link{Conn: c, name: r.info.Nodes[rank].Name, taken: make(chan struct{}, inputWindow)}
	close(l.taken) // attached input is taken as the connection has room
	f := launch.Frame{}
	if err = c.Send(launch.KindAttach, 0, launch.Attach{Step: step}); err == nil {
		f, err = c.Next()
	}
	var layout launch.Layout
	switch {
	case err != nil:
	case f.Kind == launch.KindError:
		err = refused{string(f.Body)}
	default:
		err = f.Read(&layout)
	}
	at := slices.IndexFunc(layout.Placed, func(p launch.Placed) bool { return p.Rank == rank })
	if err == nil && at < 0 {
		err = fmt.Errorf("rank %d says nothing of its own tasks", rank)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	l.at = layout.Placed[at]
	l.layout = &layout
	return l, nil
}

// watch shows what the tasks write, until all have ended.
func (r *run) watch() (code int, err error) {
	r.layout = r.links[0].layout
	if r.out, err = r.openOutput(); err != nil {
		return 1, err
	}
	if r.o.pty {
		defer rawTerminal()()
	}
	for _, l := range r.links {
		go r.listen(l, l.Conn) // ends with its connection
	}
	r.feed()
	for live := len(r.links); live > 0; {
		e := <-r.events
		switch f := e.frame; {
		case e.err != nil && !e.link.over:
			err = errors.Join(err, fmt.Errorf("the connection to node %s has ended: the step may go on", e.link.name))
			e.link.over = true
			live--
		case e.err != nil:
		case f.Kind == launch.KindOutput || f.Kind == launch.KindErrors:
			r.out.write(f.Kind, int(f.Task), f.Body)
		case f.Kind == launch.KindExit:
			var x launch.Exit
			if f.Read(&x) == nil && x.Status() != 0 {
				r.sayExit(int(f.Task), x)
				code = max(code, x.Code)
			}
		case f.Kind == launch.KindError:
			err = errors.Join(err, errors.New(string(f.Body)))
			e.link.over = true
			live--
		case f.Kind == launch.KindOver:
			e.link.over = true
			live--
		}
	}
	r.out.close()
	return code, err
}

func (r *run) sayExit(task int, x launch.Exit) {
	if r.o.quiet == 0 && x.Signal == 0 {
		fmt.Fprintf(os.Stderr, "sattach: error: task %d exited with exit code %d\n", task, x.Code)
	}
}

// printLayout prints where the tasks are.
func (r *run) printLayout() error {
	l := r.links[0].layout
	var b bytes.Buffer
	var names []string
	for _, at := range l.Placed {
		names = append(names, r.info.Nodes[at.Rank].Name)
	}
	fmt.Fprintf(&b, "Job step layout:\n\t%d tasks, %d nodes (%s)\n\n", l.Tasks, len(l.Placed), nodelist.Format(names))
	for k, at := range l.Placed {
		fmt.Fprintf(&b, "\tNode %d (%s), %d task(s): ", k, names[k], len(at.Tasks))
		for _, t := range at.Tasks {
			fmt.Fprintf(&b, "%d ", t.ID)
		}
		b.WriteByte('\n')
	}
	_, err := os.Stdout.Write(b.Bytes())
	return err
}
