// Package srun is the command of that name inside of a batch script: it asks the
// job's first rank for a step, has each rank of it start its tasks, and passes
// between them and its own files what is read, written and signalled. It takes
// Slurm's options, prints what Slurm's prints, and ends with the highest exit code
// of its tasks.
package srun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gbatch/internal/launch"
)

const usageText = `Usage: srun [OPTIONS...] executable [args...]
Starts tasks of this job. The options are Slurm's; see docs/slurm.md of gbatch.
`

// Main is the command. It returns its exit code.
func Main(args []string) int {
	info, err := launch.Load()
	if err != nil {
		return fail(err)
	}
	forgetEmpty()
	o, err := parse(args, os.LookupEnv)
	if u := (usage{}); errors.As(err, &u) {
		fmt.Fprintf(os.Stderr, "srun: %s\nTry \"srun --help\" for more information\n", u.text)
		return misused
	}
	switch o.mpi {
	case "version":
		fmt.Println("slurm 22.05 (of gbatch)")
		return 0
	case "help":
		fmt.Print(usageText)
		return 0
	case "list":
		fmt.Fprint(os.Stderr, "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n")
		return 0
	}
	o.attended = attended()
	r := &run{info: info, o: o}
	if err := r.prepare(); err != nil {
		return fail(err)
	}
	code, err := r.do()
	if err != nil {
		return fail(err)
	}
	return code
}

// misused is the exit code for options that cannot be understood, as Slurm's.
const misused = 255

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "srun: error:", err)
	return 1
}

// run is one call of srun.
type run struct {
	info *launch.Info
	o    *options

	start    launch.Start // what is the same for all ranks
	layout   *launch.Layout
	steps    *launch.Conn // to the first rank, which has the step
	links    []*link      // beside layout.Placed
	out      *output
	events   chan event
	ended    *ends
	canceled bool

	input     io.Reader      // what tasks read; nil: nothing
	inputTask int            // that alone; -1: all
	perNode   int            // tasks on each node, where they are shared out so
	warnings  []string       // in Slurm's words, which it says with --quiet too
	multi     map[int]string // the program of each task, if they differ

	ending bool // the tasks were told to end
	killed bool // they were sent KILL
}

// prepare completes what was asked by what the job says, and checks it.
func (r *run) prepare() error {
	o, i := r.o, r.info
	if len(o.args) == 0 {
		return errors.New("No command given to execute.") //nolint:staticcheck // as Slurm writes it
	}
	for _, w := range o.warned {
		if id, ok := strings.CutPrefix(w, "jobid="); ok && id != fmt.Sprint(i.Job) && id != i.ID {
			return fmt.Errorf("--jobid=%s is not this job, which is %s", id, i.ID)
		}
	}
	if err := r.count(); err != nil {
		return err
	}
	for _, w := range r.warnings {
		fmt.Fprintln(os.Stderr, w)
	}
	q := &o.q
	if i.GPUsPerTask > 0 && q.GPUs == nil && q.GPUsPerNode == nil && q.GPUsPerTask == nil {
		q.GPUsPerTask = new(i.GPUsPerTask)
	}
	r.inherit()
	if q.Name == "" {
		q.Name = filepath.Base(o.args[0])
	}
	return r.order()
}

// do has the step begun, waits for its tasks, and has its end recorded.
func (r *run) do() (code int, err error) {
	if err := r.reserve(); err != nil {
		return 1, err
	}
	defer r.steps.Close()
	r.events = make(chan event, 64)
	r.ended = newEnds(r)
	if r.out, err = r.openOutput(); err == nil {
		err = r.connect()
	}
	if err != nil {
		r.tell(launch.Done{Code: 1})
		return 1, err
	}
	restore := func() {}
	if r.start.Terminal != nil {
		restore = rawTerminal()
	}
	code = r.wait()
	restore()
	r.out.close()
	done := launch.Done{Code: code, Cancel: r.canceled, OOM: r.ended.oom, Use: r.ended.use}
	if _, signal := r.ended.result(); code > 128 && signal > 0 {
		done.Signal = signal
	}
	r.tell(done)
	return code, nil
}

// tell has the step's end recorded.
func (r *run) tell(d launch.Done) {
	if r.steps.Send(launch.KindDone, 0, d) != nil {
		return
	}
	_ = r.steps.SetReadDeadline(time.Now().Add(30 * time.Second))
	if r.ended == nil || r.events == nil {
		return
	}
	for e := range r.events { // the reader of steps says when it is recorded, or the connection ends
		if e.link == nil && (e.err != nil || e.frame.Kind == launch.KindNoted) {
			return
		}
	}
}

// reserve gets a step from the job's first rank, where somebody has to be who
// divides its cores: the first srun begins that.
func (r *run) reserve() (err error) {
	if r.steps, err = r.reach(); err != nil {
		return err
	}
	if err := r.steps.Send(launch.KindReserve, 0, r.o.q); err != nil {
		return err
	}
	waited := false
	for {
		f, err := r.steps.Next()
		if err != nil {
			return fmt.Errorf("the job's first rank has gone: %w", err)
		}
		switch f.Kind {
		case launch.KindWait:
			fmt.Fprintf(os.Stderr, "srun: Job %d step creation temporarily disabled, retrying (%s)\n", r.info.Job, f.Body)
			waited = true
		case launch.KindGrant:
			if waited {
				fmt.Fprintf(os.Stderr, "srun: Step created for job %d\n", r.info.Job)
			}
			r.layout = &launch.Layout{}
			return f.Read(r.layout)
		case launch.KindError:
			return fmt.Errorf("Unable to create step for job %d: %s", r.info.Job, f.Body)
		}
	}
}
