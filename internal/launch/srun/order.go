package srun

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// order is what all ranks are told to start.
func (r *run) order() error {
	o, s := r.o, &r.start
	s.Args = o.args
	if o.multi {
		return r.programs()
	}
	return r.rest(s)
}

// programs reads the file that names the program of each task.
func (r *run) programs() error {
	text, err := os.ReadFile(r.o.args[0])
	if err != nil {
		return err
	}
	r.multi, err = parseMulti(string(text), r.o.args[1:])
	if err == nil && r.o.q.Tasks == 0 && r.info.Tasks == 0 {
		for id := range r.multi {
			r.o.q.Tasks = max(r.o.q.Tasks, id+1)
		}
	}
	r.start.Programs = r.multi
	return errors.Join(err, r.rest(&r.start))
}

func (r *run) rest(s *launch.Start) error {
	o := r.o
	s.Env, s.OwnEnv = r.environment()
	s.Dir = o.dir
	if s.Dir == "" {
		var err error
		if s.Dir, err = os.Getwd(); err != nil {
			s.Dir = "/"
		}
	}
	s.Umask = syscall.Umask(0)
	syscall.Umask(s.Umask)
	s.Limits = limits()
	s.Append = o.appends
	if o.mpi == "pmi2" {
		s.PMI = "pmi"
	}
	s.PMIx = o.mpi == "pmix" || o.mpi == "" // a program that does not look for it is not disturbed
	q := &o.q
	s.Pinned = q.Exact || q.CPUBind == "cores"
	if q.CPUBind == "none" || q.Overcommit {
		s.Pinned = false
	}
	r.inputTask = -1
	if err := r.stdio(s); err != nil {
		return err
	}
	if o.beside != nil { // in its container, whatever that is
		s.Beside, s.Over, s.Dir = o.beside, o.box.env, o.dir
		return nil
	}
	err := o.box.decide(r.info, s)
	q.Image = shownImage(s.In)
	return err
}

// stdio says what tasks read and write: by srun, or files that they open.
func (r *run) stdio(s *launch.Start) error {
	o := r.o
	if o.pty {
		s.Input, s.Output, s.Errors, s.Terminal = launch.Stream, launch.Stream, launch.Stream, r.size()
		r.input, r.inputTask = os.Stdin, 0
		return nil
	}
	switch in := o.in; {
	case in == "all" || in == "":
		s.Input, r.input = launch.Stream, os.Stdin
	case in == "none":
		s.Input = launch.Null
	case isNumber(in):
		s.Input, r.input = launch.Stream, os.Stdin
		r.inputTask, _ = strconv.Atoi(in)
	case launch.PerTask(in):
		s.Input = in
	default:
		f, err := os.Open(launch.Pattern{Info: r.info}.Expand(in))
		if err != nil {
			return fmt.Errorf("Could not open stdin file: %w", err)
		}
		s.Input, r.input = launch.Stream, f
	}
	s.Output = streamOr(o.out)
	if o.errs == "" {
		s.Errors = launch.Merged
		if s.Output == launch.Stream {
			s.Errors = launch.Stream
		}
	} else {
		s.Errors = streamOr(o.errs)
	}
	return nil
}

// streamOr is what a mode of output means to a rank.
func streamOr(mode string) string {
	switch {
	case mode == "none":
		return launch.Null
	case launch.PerTask(mode):
		return mode
	}
	return launch.Stream // to srun, which may write it to a file
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// environment is what tasks have of srun's variables, by --export.
func (r *run) environment() (env []string, own bool) {
	o := r.o
	if o.export == "" || strings.EqualFold(o.export, "ALL") {
		return os.Environ(), false
	}
	own = true
	for k, part := range strings.Split(o.export, ",") {
		name, _, given := strings.Cut(part, "=")
		word := strings.ToUpper(part)
		if k == 0 && (word == "NONE" || word == "NIL") {
			break // what follows is not looked at
		}
		switch {
		case word == "ALL":
			env, own = append(os.Environ(), env...), false
		case word == "NONE" || word == "NIL" || word == "":
		case given:
			env = append(env, part)
		default:
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	for _, kv := range os.Environ() {
		if own && strings.HasPrefix(kv, "SLURM_") {
			env = append(env, kv)
		}
	}
	return env, own
}

// limits are the soft limits that tasks get of srun's. That of open files is left
// out: this program has its own.
func limits() (list []launch.Limit) {
	for _, kind := range []int{unix.RLIMIT_STACK, unix.RLIMIT_CORE, unix.RLIMIT_AS, unix.RLIMIT_DATA, unix.RLIMIT_FSIZE, unix.RLIMIT_MEMLOCK, unix.RLIMIT_NPROC, unix.RLIMIT_RSS, unix.RLIMIT_CPU} {
		var l unix.Rlimit
		if unix.Getrlimit(kind, &l) == nil {
			list = append(list, launch.Limit{Kind: kind, Soft: l.Cur})
		}
	}
	return list
}

// extra are variables that say how tasks were asked for.
func (r *run) extra() map[string]string {
	q, own := r.o.q, r.info.Own()
	set := map[string]string{
		"SLURM_SRUN_COMM_HOST": own.Address, "SLURM_SRUN_COMM_PORT": strconv.Itoa(r.info.Port), "SLURM_LAUNCH_NODE_IPADDR": own.Address,
		"SLURM_STEP_LAUNCHER_PORT": strconv.Itoa(r.info.Port), "SLURM_DISTRIBUTION": "block",
	}
	if q.Distribution != "" {
		set["SLURM_DISTRIBUTION"] = q.Distribution
	}
	if q.CPUs > 0 {
		set["SLURM_CPUS_PER_TASK"] = strconv.Itoa(q.CPUs)
	}
	if r.perNode > 0 {
		set["SLURM_NTASKS_PER_NODE"] = strconv.Itoa(r.perNode)
	}
	if q.GPUsPerTask != nil {
		set["SLURM_GPUS_PER_TASK"] = strconv.Itoa(*q.GPUsPerTask)
	}
	if r.o.mpi != "" {
		set["SLURM_MPI_TYPE"] = r.o.mpi
	}
	return set
}

// parseMulti reads lines of tasks and their program: "0-3,8 prog arg", "* prog".
// The first line that names a task counts. An asterisk is for up to 65,536.
func parseMulti(text string, _ []string) (map[int]string, error) {
	programs := map[int]string{}
	rest := ""
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		tasks, program, ok := strings.Cut(line, " ")
		if !ok {
			tasks, program, ok = strings.Cut(line, "\t")
		}
		if !ok {
			return nil, fmt.Errorf("line %d of the configuration file names no program", n+1)
		}
		program = strings.TrimSpace(program)
		if tasks == "*" {
			rest = program
			continue
		}
		offset := 0 // of a task among those of its line
		for part := range strings.SplitSeq(tasks, ",") {
			low, high, ranged := strings.Cut(part, "-")
			if !ranged {
				high = low
			}
			from, err := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err != nil || err2 != nil || from < 0 || to < from || to >= 1<<16 {
				return nil, fmt.Errorf("line %d of the configuration file: %q are no tasks", n+1, part)
			}
			for id := from; id <= to; id++ {
				if _, seen := programs[id]; !seen {
					programs[id] = strings.ReplaceAll(program, "%o", strconv.Itoa(offset))
				}
				offset++
			}
		}
	}
	if rest != "" {
		programs[launch.AnyTask] = rest
	}
	return programs, nil
}
