package srun

import (
	"cmp"
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job/nodelist"
	"gbatch/internal/launch"
)

type launchRequest = launch.Request

// table are srun's options.
func table() []option {
	return slices.Concat(howMany(), where(), programs(), stdio(), gpus(), bindings(), ofJobs(), containers())
}

func number(set func(o *options, n int)) func(*options, string) error {
	return func(o *options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 1_000_000 {
			return errors.New("want a number above 0")
		}
		set(o, n)
		return nil
	}
}

func perNode(o *options, n int) { o.q.PerNode = n }

func howMany() []option {
	return []option{
		{long: "ntasks", short: 'n', takes: '=', env: "SLURM_NTASKS SLURM_NPROCS", set: number(func(o *options, n int) { o.q.Tasks = n })},
		{long: "nodes", short: 'N', takes: '=', set: setNodes},
		{long: "ntasks-per-node", takes: '=', env: "SLURM_NTASKS_PER_NODE", set: number(perNode)},
		{long: "cpus-per-task", short: 'c', takes: '=', env: "SRUN_CPUS_PER_TASK", set: number(func(o *options, n int) { o.q.CPUs = n })},
		{long: "tasks-per-node", takes: '=', set: number(perNode)},
		{long: "ntasks-per-gpu", takes: '=', set: number(func(o *options, n int) { o.q.TasksPerGPU = n })},
		{long: "distribution", short: 'm', takes: '=', env: "SLURM_DISTRIBUTION", set: setDistribution},
		flag("overlap", 0, "SLURM_OVERLAP", func(o *options) { o.q.Overlap = true }),
		{long: launch.BesideOption, takes: '=', set: setBeside},
		flag("overcommit", 'O', "SLURM_OVERCOMMIT", func(o *options) { o.q.Overcommit = true }),
		flag("oversubscribe", 's', "", func(o *options) { o.q.Overlap = true }),
		flag("exact", 0, "SLURM_EXACT", func(o *options) { o.q.Exact = true }),
		{long: "exclusive", takes: '?', set: func(o *options, v string) error {
			if v != "" {
				return errors.New("want the option without a value")
			}
			o.q.Exact = true
			return nil
		}},
		flag("whole", 0, "", func(*options) {}),
		{long: "immediate", short: 'I', takes: '?', set: func(o *options, v string) error { o.q.Immediate = true; return nil }},
	}
}

func setNodes(o *options, v string) error {
	low, high, ranged := strings.Cut(v, "-")
	n, err := strconv.Atoi(low)
	most := n
	if err == nil && ranged {
		most, err = strconv.Atoi(high)
	}
	if err != nil || n < 1 || most < n {
		return errors.New("want a number of nodes, or LEAST-MOST")
	}
	o.q.Nodes, o.q.MaxNodes = n, most
	return nil
}

// setBeside takes the number of a step, whose cores are there for these tasks, too.
func setBeside(o *options, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		return errors.New("want the number of a step")
	}
	o.beside, o.q.Overlap = new(uint32(n)), true
	return nil
}

// setDistribution takes what is said of nodes; of sockets and cores in them
// anything, since a rank has whole cores near its GPUs.
func setDistribution(o *options, v string) error {
	word, _, _ := strings.Cut(strings.ToLower(v), ",")
	word, _, _ = strings.Cut(word, ":")
	switch {
	case word == "*" || word == "block" || word == "" || word == "nopack":
		o.q.Distribution = "block"
	case word == "cyclic":
		o.q.Distribution = "cyclic"
	case word == "plane": // as sbatch tells its script
		return setDistribution(o, "plane="+cmp.Or(os.Getenv("SLURM_DIST_PLANESIZE"), "none"))
	case strings.HasPrefix(word, "plane="):
		if n, err := strconv.Atoi(word[6:]); err != nil || n < 1 {
			return errors.New("want plane=NUMBER")
		}
		o.q.Distribution = word
	default:
		return errors.New("want block, cyclic or plane=NUMBER")
	}
	return nil
}

func where() []option {
	return []option{
		{long: "nodelist", short: 'w', takes: '=', set: func(o *options, v string) (err error) {
			if strings.Contains(v, "/") {
				return errors.New("is a file: name the nodes")
			}
			o.q.On, err = nodelist.Parse(v)
			return err
		}},
		{long: "exclude", short: 'x', takes: '=', set: func(o *options, v string) (err error) {
			o.q.Not, err = nodelist.Parse(v)
			return err
		}},
		{long: "relative", short: 'r', takes: '=', set: func(o *options, v string) (err error) {
			o.q.Relative, err = strconv.Atoi(v)
			return err
		}},
		{long: "jobid", takes: '=', set: func(o *options, v string) error {
			o.warned = append(o.warned, "jobid="+v)
			return nil
		}},
		{long: "job-name", short: 'J', takes: '=', set: func(o *options, v string) error { o.q.Name = v; return nil }},
	}
}

func programs() []option {
	text := func(to func(*options) *string) func(*options, string) error {
		return func(o *options, v string) error { *to(o) = v; return nil }
	}
	return []option{
		{long: "export", takes: '=', env: "SLURM_EXPORT_ENV", set: text(func(o *options) *string { return &o.export })},
		{long: "chdir", short: 'D', takes: '=', env: "SLURM_REMOTE_CWD", set: text(func(o *options) *string { return &o.dir })},
		flag("multi-prog", 0, "", func(o *options) { o.multi = true }),
		{long: "mpi", takes: '=', env: "SLURM_MPI_TYPE", set: setMPI},
		{long: "kill-on-bad-exit", short: 'K', takes: '?', env: "SLURM_KILL_BAD_EXIT", set: func(o *options, v string) error { o.killBad = v != "0"; return nil }},
		{long: "wait", short: 'W', takes: '=', env: "SLURM_WAIT", set: func(o *options, v string) (err error) {
			o.waitS, err = strconv.Atoi(v)
			return err
		}},
		{long: "time", short: 't', takes: '=', set: setTime},
		flag("pty", 0, "", func(o *options) { o.pty = true }),
		flag("quit-on-interrupt", 'X', "", func(o *options) { o.quitOnInt = true }),
		flag("disable-status", 0, "", func(o *options) { o.quitOnInt = true }),
		flag("verbose", 'v', "", func(o *options) { o.verbose++ }),
		flag("quiet", 'Q', "", func(o *options) { o.quiet++ }),
		flag("version", 'V', "", func(o *options) { o.args = nil; o.mpi = "version" }),
		flag("help", 'h', "", func(o *options) { o.mpi = "help" }),
		flag("usage", 0, "", func(o *options) { o.mpi = "help" }),
	}
}

func setMPI(o *options, v string) error {
	switch v {
	case "none", "openmpi":
		o.mpi = "none"
	case "pmi1", "pmi2", "pmi":
		o.mpi = "pmi2"
	case "list":
		o.mpi = "list"
	case "pmix", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5":
		o.mpi = "pmix"
	default:
		return errors.New("want none, pmi2 or pmix")
	}
	return nil
}

// times are seconds in minutes, minutes:seconds, hours:minutes:seconds and
// days-hours[:minutes[:seconds]].
func setTime(o *options, v string) error {
	days, rest, withDays := strings.Cut(v, "-")
	if !withDays {
		days, rest = "0", v
	}
	n := []int64{}
	for p := range strings.SplitSeq(days+":"+rest, ":") {
		x, err := strconv.ParseInt(p, 10, 32)
		if err != nil || x < 0 {
			return errors.New("want minutes, or HH:MM:SS, or D-HH:MM:SS")
		}
		n = append(n, x)
	}
	switch parts := n[1:]; {
	case withDays && len(parts) <= 3:
		parts = append(parts, 0, 0)
		o.limitS = n[0]*86400 + parts[0]*3600 + parts[1]*60 + parts[2]
	case len(parts) == 1:
		o.limitS = parts[0] * 60
	case len(parts) == 2:
		o.limitS = parts[0]*60 + parts[1]
	case len(parts) == 3:
		o.limitS = parts[0]*3600 + parts[1]*60 + parts[2]
	default:
		return errors.New("has too many parts")
	}
	o.limitS = (o.limitS + 59) / 60 * 60 // as Slurm, which counts minutes
	return nil
}

func stdio() []option {
	return []option{
		{long: "output", short: 'o', takes: '=', env: "SLURM_STDOUTMODE", set: func(o *options, v string) error { o.out = v; return nil }},
		{long: "error", short: 'e', takes: '=', env: "SLURM_STDERRMODE", set: func(o *options, v string) error { o.errs = v; return nil }},
		{long: "input", short: 'i', takes: '=', env: "SLURM_STDINMODE", set: func(o *options, v string) error { o.in = v; return nil }},
		{long: "open-mode", takes: '=', env: "SLURM_OPEN_MODE", set: func(o *options, v string) error {
			switch v {
			case "a", "append":
				o.appends = true
			case "t", "truncate":
				o.appends = false
			default:
				return errors.New("want append or truncate")
			}
			return nil
		}},
		flag("label", 'l', "SLURM_LABELIO", func(o *options) { o.label = true }),
		flag("unbuffered", 'u', "SLURM_UNBUFFEREDIO", func(o *options) { o.unbuffer = true }),
	}
}

func gpus() []option {
	count := func(to func(*options) **int) func(*options, string) error {
		return func(o *options, v string) error {
			n := 1
			parts := strings.Split(v, ":")
			last := parts[len(parts)-1]
			x, err := strconv.Atoi(last)
			switch {
			case err == nil && x >= 0:
				n = x
			case last == "" || len(parts) > 1:
				return errors.New("want a number, or MODEL:NUMBER")
			}
			*to(o) = &n
			return nil
		}
	}
	return []option{
		{long: "gpus", short: 'G', takes: '=', set: count(func(o *options) **int { return &o.q.GPUs })},
		{long: "gpus-per-node", takes: '=', set: count(func(o *options) **int { return &o.q.GPUsPerNode })},
		{long: "gpus-per-task", takes: '=', env: "SLURM_GPUS_PER_TASK", set: count(func(o *options) **int { return &o.q.GPUsPerTask })},
		{long: "gres", takes: '=', set: func(o *options, v string) error {
			if v == "none" || v == "NONE" {
				o.q.GPUsPerNode = new(int)
				return nil
			}
			name, rest, more := strings.Cut(v, ":")
			if name != "gpu" || strings.Contains(v, ",") {
				return errors.New("want gpu:NUMBER, gpu:MODEL:NUMBER or none")
			}
			if !more {
				rest = "1"
			}
			return count(func(o *options) **int { return &o.q.GPUsPerNode })(o, rest)
		}},
		{long: "gpu-bind", takes: '=', env: "SLURM_GPU_BIND", set: func(o *options, v string) error {
			v = strings.TrimPrefix(strings.TrimPrefix(v, "verbose,"), "quiet,")
			switch word, _, _ := strings.Cut(v, ":"); word {
			case "none", "single", "per_task", "map_gpu":
				o.q.GPUBind = v
			case "closest":
				o.q.GPUBind = "" // a rank's GPUs are near its cores
			default:
				return errors.New("want closest, none, single:TASKS, per_task:GPUS or map_gpu:LIST")
			}
			return nil
		}},
		instead("gpus-per-socket", 0, '=', "give --gpus-per-node"),
		{long: "cpus-per-gpu", takes: '=', set: number(func(o *options, n int) { o.warned = append(o.warned, "cpus-per-gpu") })},
	}
}

func bindings() []option {
	return []option{
		{long: "cpu-bind", takes: '=', env: "SLURM_CPU_BIND", set: bindCPUs},
		{long: "cpu_bind", takes: '=', set: bindCPUs}, // as Slurm wrote it before version 17
		harmless("mem-bind", 0, '='), harmless("hint", 0, '='), harmless("threads-per-core", 0, '='), harmless("ntasks-per-core", 0, '='),
		harmless("ntasks-per-socket", 0, '='), harmless("sockets-per-node", 0, '='), harmless("cores-per-socket", 0, '='), harmless("extra-node-info", 'B', '='),
		harmless("cpu-freq", 0, '='), harmless("accel-bind", 0, '='), harmless("gres-flags", 0, '='), harmless("tres-per-task", 0, '='),
		{long: "mem", takes: '=', set: memory}, {long: "mem-per-cpu", takes: '=', set: memory}, {long: "mem-per-gpu", takes: '=', set: memory},
	}
}

// bindCPUs: tasks have cores of their own, in their order.
func bindCPUs(o *options, v string) error {
	for word := range strings.SplitSeq(v, ",") {
		word, _, _ = strings.Cut(strings.Replace(word, "=", ":", 1), ":")
		switch strings.ToLower(word) {
		case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom": // numbers of a machine that is not this one
			o.q.CPUBind = "cores"
			return nil
		case "none", "no":
			o.q.CPUBind = "none"
		case "core", "cores", "thread", "threads", "rank", "rank_ldom", "socket", "sockets", "ldom", "ldoms", "board", "boards":
			o.q.CPUBind = "cores"
		case "verbose", "v", "quiet", "q", "autobind", "auto":
		default:
			return errors.New("want none, cores, threads, sockets, ldoms, or a map or mask of cores: a task has cores of its own, in their order")
		}
	}
	return nil
}

// memory is checked and not kept: the job's is shared by its steps.
func memory(_ *options, v string) error {
	if !regexp.MustCompile(`^[0-9]+[KMGTkmgt]?[Bb]?$`).MatchString(v) {
		return errors.New("want a number of MiB, or a number and K, M, G or T")
	}
	return nil
}

// ofJobs are what would be asked of a job, which this one has been.
func ofJobs() []option {
	list := []option{
		harmless("no-kill", 'k', '?'), harmless("propagate", 0, '?'), harmless("profile", 0, '='), harmless("acctg-freq", 0, '='),
		harmless("preserve-env", 'E', 0), harmless("slurmd-debug", 0, '='), harmless("comment", 0, '='), harmless("send-libs", 0, '?'),
		harmless("mail-type", 0, '='), harmless("mail-user", 0, '='), harmless("epilog", 0, '='), harmless("prolog", 0, '='), harmless("threads", 'T', '='),
		harmless("wckey", 0, '='), harmless("delay-boot", 0, '='), harmless("no-allocate", 'Z', 0), harmless("use-min-nodes", 0, 0),
		harmless("resv-ports", 0, '?'), harmless("compress", 0, '?'), harmless("bcast-exclude", 0, '?'), harmless("network", 0, '='),
		instead("bcast", 0, '?', "put the program where all ranks see it, as below project storage"),
		instead("het-group", 0, '=', "all nodes of a job are alike"), instead("pack-group", 0, '=', "all nodes of a job are alike"),
		instead("task-prolog", 0, '=', "call it in front of the command"), instead("task-epilog", 0, '=', "call it behind the command"),
		instead("x11", 0, '?', "use gexec --forward"),
		instead("array", 0, '=', "give it to sbatch"), instead("multiple-programs", 0, '=', "use --multi-prog"),
		instead("signal", 0, '=', "a warning before the end is the job's: give it to sbatch"),
	}
	for _, name := range []string{"account=A", "partition=p", "qos=q", "constraint=C", "dependency=d", "licenses=L", "reservation=", "begin=b", "deadline=",
		"priority=", "nice=", "tmp=", "mincpus=", "switches=", "clusters=M", "cluster-constraint=", "time-min=", "uid=", "gid=", "core-spec=S", "contiguous", "requeue", "no-requeue",
		"get-user-env", "reboot", "power=", "bb=", "bbf=", "spread-job", "thread-spec=", "mcs-label="} {
		long, short, takes := strings.Cut(name, "=")
		x := harmless(long, 0, 0)
		if takes {
			x.takes = '='
		}
		if short != "" {
			x.short = short[0]
		}
		list = append(list, x)
	}
	return list
}
