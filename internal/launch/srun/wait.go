package srun

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// killWait is how long tasks have to end that were told to, before they are
// killed.
const killWait = 30 * time.Second

// watch is what srun waits for beside its tasks.
type watch struct {
	signals chan os.Signal
	tell    *time.Timer // to say how tasks have ended, several together
	kill    *time.Timer // to kill tasks that were told to end
	others  *time.Timer // -W: after the first task has ended
	limit   *time.Timer // -t
	last    time.Time   // of the last interrupt

	barrier map[string]string // PMI: what was put, by how many ranks
	arrived int

	fences map[string]*fence // PMIx: at which not all have arrived
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// wait stays until all tasks have ended, and returns srun's exit code.
func (r *run) wait() int {
	w := &watch{signals: make(chan os.Signal, 16), tell: stopped(), kill: stopped(), others: stopped(), limit: stopped(), barrier: map[string]string{}, fences: map[string]*fence{}}
	signal.Notify(w.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGALRM, unix.SIGPIPE, unix.SIGWINCH)
	if r.o.limitS > 0 {
		w.limit.Reset(time.Duration(r.o.limitS) * time.Second)
	}
	for ranks := len(r.links); ranks > 0; {
		select {
		case e := <-r.events:
			if r.take(w, e) {
				ranks--
			}
		case s := <-w.signals:
			r.signalled(w, s.(unix.Signal))
		case <-w.tell.C:
			r.ended.tell()
		case <-w.kill.C:
			r.force(w)
		case <-w.others.C:
			fmt.Fprintf(os.Stderr, "srun: First task exited %ds ago\n", r.o.waitS)
			r.abort(w, 0)
		case <-w.limit.C:
			r.say("CANCELLED", " DUE TO TIME LIMIT")
			r.abort(w, killWait)
		}
	}
	r.ended.tell()
	code, _ := r.ended.result()
	return code
}

// take takes one event in. Over says that a rank has nothing more to tell.
func (r *run) take(w *watch, e event) (over bool) {
	l, f := e.link, e.frame
	if l == nil {
		if e.err == nil && f.Kind == launch.KindCancel {
			r.canceled = true
			r.say("CANCELLED", "")
			r.abort(w, killWait)
		}
		return false
	}
	if l.over {
		return false
	}
	if e.err != nil {
		return r.lost(w, l)
	}
	switch f.Kind {
	case launch.KindOutput, launch.KindErrors:
		r.out.write(f.Kind, int(f.Task), f.Body)
	case launch.KindExit:
		var x launch.Exit
		if f.Read(&x) == nil {
			r.exited(w, l, int(f.Task), x)
		}
	case launch.KindPMI:
		r.pmi(w, f)
	case launch.KindPMIx:
		r.pmix(w, l, f)
	case launch.KindError:
		fmt.Fprintf(os.Stderr, "srun: error: %s: %s\n", l.name, f.Body)
		return r.lost(w, l)
	case launch.KindOver:
		l.over = true
		l.Close()
		r.stuck(w)
		return true
	}
	return false
}

// lost takes in that a rank of the step has gone.
func (r *run) lost(w *watch, l *link) bool {
	l.over = true
	l.Close()
	fmt.Fprintf(os.Stderr, "srun: error: Node failure on %s\n", l.name)
	if r.ended.code == 0 {
		r.ended.code = 1
	}
	r.abort(w, 0)
	return true
}

// tellAfter is how long the end of a task waits for those of others, to be told
// in one line.
const tellAfter = 100 * time.Millisecond

func (r *run) exited(w *watch, l *link, task int, x launch.Exit) {
	bad := r.ended.take(l, task, x)
	if bad {
		w.tell.Reset(tellAfter)
	}
	if bad && r.o.killBad && !r.ending && r.ended.left > 0 {
		r.ended.tell()
		fmt.Fprintf(os.Stderr, "srun: Terminating StepId=%d.%d\n", r.info.Job, r.layout.Step)
		r.abort(w, killWait)
	}
	if r.o.waitS > 0 && r.ended.left == r.layout.Tasks-1 {
		w.others.Reset(time.Duration(r.o.waitS) * time.Second)
	}
}

// abort has the tasks end: at once, or by TERM and some time.
func (r *run) abort(w *watch, grace time.Duration) {
	if r.killed || r.ended.left == 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "srun: Job step aborted: Waiting up to %d seconds for job step to finish.\n", int((killWait+2*time.Second)/time.Second))
	r.ending = true
	if grace == 0 {
		r.killAll()
		return
	}
	r.toAll(int(unix.SIGCONT))
	r.toAll(int(unix.SIGTERM))
	w.kill.Reset(grace)
}

func (r *run) killAll() {
	r.killed = true
	r.toAll(int(unix.SIGKILL))
}

func (r *run) say(what, why string) {
	fmt.Fprintf(os.Stderr, "slurmstepd: error: *** STEP %d.%d ON %s %s AT %s%s ***\n", r.info.Job, r.layout.Step, r.links[0].name, what, time.Now().Format("2006-01-02T15:04:05"), why)
}

// signalled does what Slurm's srun does on a signal.
func (r *run) signalled(w *watch, s unix.Signal) {
	if !r.o.attended && (s == unix.SIGINT || s == unix.SIGQUIT) { // of scancel -s, and for the tasks
		r.toAll(int(s))
		return
	}
	switch s {
	case unix.SIGWINCH:
		if r.start.Terminal != nil {
			for _, l := range r.links {
				_ = l.Send(launch.KindSize, 0, r.size())
			}
		}
	case unix.SIGINT:
		r.interrupted(w)
	case unix.SIGTERM, unix.SIGHUP: // as of gcancel, which means the tasks: they may end by themselves
		fmt.Fprintln(os.Stderr, "srun: forcing job termination")
		r.abort(w, killWait)
	case unix.SIGQUIT:
		fmt.Fprintln(os.Stderr, "srun: forcing job termination")
		r.say("CANCELLED", "")
		r.abort(w, 0)
	case unix.SIGPIPE:
	default:
		r.toAll(int(s))
	}
}

// interrupted takes Ctrl-C: the first says how the tasks are, another within a second ends
// them.
func (r *run) interrupted(w *watch) {
	if !r.o.quitOnInt && time.Since(w.last) > time.Second {
		w.last = time.Now()
		fmt.Fprintln(os.Stderr, "srun: interrupt (one more within 1 sec to abort)")
		for _, line := range r.ended.states() {
			fmt.Fprintf(os.Stderr, "srun: StepId=%d.%d %s\n", r.info.Job, r.layout.Step, line)
		}
		return
	}
	fmt.Fprintf(os.Stderr, "srun: sending Ctrl-C to StepId=%d.%d\n", r.info.Job, r.layout.Step)
	r.toAll(int(unix.SIGINT))
	if !r.ending {
		w.kill.Reset(interruptWait)
	}
}

// interruptWait is how long tasks have to end by the signal of Ctrl-C.
const interruptWait = 500 * time.Millisecond

// force kills tasks that did not end when they were told to.
func (r *run) force(w *watch) {
	if r.ending || r.ended.left == 0 {
		r.killAll()
		return
	}
	fmt.Fprintln(os.Stderr, "srun: forcing job termination")
	r.say("CANCELLED", "")
	r.abort(w, 0)
}

// pmi takes what tasks of a rank tell those of others.
func (r *run) pmi(w *watch, f launch.Frame) {
	var b launch.PMIBarrier
	if f.Read(&b) != nil {
		return
	}
	if b.Abort != nil {
		fmt.Fprintf(os.Stderr, "srun: error: task %d called MPI_Abort with code %d\n", f.Task, *b.Abort)
		r.ended.code = max(r.ended.code, *b.Abort&0xff, 1)
		r.abort(w, 0)
		return
	}
	for k, v := range b.Put {
		w.barrier[k] = v
	}
	if w.arrived++; w.arrived < len(r.links) {
		return
	}
	for _, l := range r.links {
		_ = l.Send(launch.KindPMI, 0, launch.PMIBarrier{Put: w.barrier})
	}
	w.arrived = 0
	clear(w.barrier)
}
