package srun

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/launch"
)

// ends are how the tasks have ended.
type ends struct {
	r       *run
	left    int          // tasks that run
	code    int          // the highest
	signal  int          // that ended the task with that code
	aborted int          // the code with which a task asked for the end; 0: none
	oom     bool         // the memory limit ended something
	over    map[int]bool // tasks that have ended
	use     *job.StepUse // of those that have ended; nil: none

	untold map[told][]int // tasks, whose end is still to be told together
}

// result is the exit code of all, and the signal behind it.
func (e *ends) result() (code, signal int) {
	if e.aborted > 0 {
		return e.aborted, 0
	}
	if e.oom {
		return 1, 0 // as Slurm's, whatever else there was
	}
	return e.code, e.signal
}

// told is what is said of the ends of tasks on one node.
type told struct{ node, text string }

func newEnds(r *run) *ends {
	return &ends{r: r, left: r.layout.Tasks, over: map[int]bool{}, untold: map[told][]int{}}
}

// states are what tasks do, in Slurm's words.
func (e *ends) states() (lines []string) {
	var running, exited []int
	for id := range e.r.layout.Tasks {
		if e.over[id] {
			exited = append(exited, id)
		} else {
			running = append(running, id)
		}
	}
	if len(running) > 0 {
		lines = append(lines, taskNames(running)+": running")
	}
	if len(exited) > 0 {
		lines = append(lines, taskNames(exited)+": exited")
	}
	return lines
}

func taskNames(tasks []int) string {
	if len(tasks) == 1 {
		return "task " + ranges(tasks)
	}
	return "tasks " + ranges(tasks)
}

// take takes one in. Bad says that it is one by which -K ends the step.
func (e *ends) take(l *link, task int, x launch.Exit) (bad bool) {
	e.left--
	e.over[task] = true
	first := e.use == nil
	if first {
		e.use = new(job.StepUse)
	}
	e.use.Add(task, l.at.Rank, first, x.Use)
	if x.Error != "" {
		fmt.Fprintf(os.Stderr, "slurmstepd: error: execve(): %s\n", strings.Replace(x.Error, "no such file or directory", "No such file or directory", 1))
	}
	if x.Status() > e.code {
		e.code, e.signal = x.Status(), x.Signal
	}
	if x.OOM {
		e.oom = true
		e.untold[told{l.name, "Out Of Memory"}] = append(e.untold[told{l.name, "Out Of Memory"}], task)
		return true
	}
	if x.Status() == 0 {
		return false
	}
	text := fmt.Sprintf("Exited with exit code %d", x.Code)
	if x.Signal > 0 {
		text = signalText(x.Signal)
		if x.Core {
			text += " (core dumped)"
		}
	}
	at := told{l.name, text}
	e.untold[at] = append(e.untold[at], task)
	return true
}

// tell says what was not said yet.
func (e *ends) tell() {
	order := slices.SortedFunc(maps.Keys(e.untold), func(a, b told) int { return strings.Compare(a.node+a.text, b.node+b.text) })
	for _, at := range order {
		tasks := e.untold[at]
		slices.Sort(tasks)
		if e.r.o.quiet == 0 {
			fmt.Fprintf(os.Stderr, "srun: error: %s: %s: %s\n", at.node, taskNames(tasks), at.text)
		}
	}
	clear(e.untold)
}

// ranges writes sorted numbers as 0-3,7.
func ranges(list []int) string {
	var out []string
	for k := 0; k < len(list); {
		end := k + 1
		for end < len(list) && list[end] == list[end-1]+1 {
			end++
		}
		text := strconv.Itoa(list[k])
		if end-k > 1 {
			text += "-" + strconv.Itoa(list[end-1])
		}
		out, k = append(out, text), end
	}
	return strings.Join(out, ",")
}

// signalText is what a shell would say.
func signalText(n int) string {
	text := map[unix.Signal]string{
		unix.SIGHUP: "Hangup", unix.SIGINT: "Interrupt", unix.SIGQUIT: "Quit", unix.SIGILL: "Illegal instruction", unix.SIGTRAP: "Trace/breakpoint trap",
		unix.SIGABRT: "Aborted", unix.SIGBUS: "Bus error", unix.SIGFPE: "Floating point exception", unix.SIGKILL: "Killed", unix.SIGUSR1: "User defined signal 1",
		unix.SIGSEGV: "Segmentation fault", unix.SIGUSR2: "User defined signal 2", unix.SIGPIPE: "Broken pipe", unix.SIGALRM: "Alarm clock", unix.SIGTERM: "Terminated",
		unix.SIGXCPU: "CPU time limit exceeded", unix.SIGXFSZ: "File size limit exceeded", unix.SIGSYS: "Bad system call",
	}[unix.Signal(n)]
	if text == "" {
		return fmt.Sprintf("Signal %d", n)
	}
	return text
}
