package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/nodelist"
	"gbatch/internal/job/sizes"
	"gbatch/internal/job/times"
)

// option is one option of sbatch: what its value does, what it does without
// one, what is remarked on, or what to do instead.
type option struct {
	long, short string
	value       func(s *script, v string) error
	flag        func(s *script)
	note        string
	hint        string
	instead     string
	tasks       bool   // it counts tasks of a script
	own         bool   // sbatch itself acts on it, when sbatch reads the script
	env         string // the variable that has its value in the script
}

func (o option) needsValue() bool { return o.value != nil && o.flag == nil }

// options are all of them. They are made anew for each script, so that a
// program that reads none does not spend its start on them.
type options []option

func allOptions() options {
	return slices.Concat(who(), howMuch(), where(), when(), inContainer(), program(), inside(), elsewhere())
}

// find returns the option of a name, as --nodes or -N.
func (all options) find(name string) (option, bool) {
	i := slices.IndexFunc(all, func(o option) bool { return name == o.long || name == o.short && name != "" })
	if i < 0 {
		return option{}, false
	}
	return all[i], true
}

// short are the options that a name may be cut short of, as --err of --error: as
// getopt_long has it, that is one option's name if no other begins so.
func (all options) short(name string) []option {
	var found []option
	for _, o := range all {
		if len(name) > len("--") && strings.HasPrefix(o.long, name) {
			found = append(found, o)
		}
	}
	return found
}

// meant finds the option of a name that may be cut short.
func (all options) meant(name string) (option, bool) {
	if o, ok := all.find(name); ok {
		return o, true
	}
	if found := all.short(name); len(found) == 1 {
		return found[0], true
	}
	return option{}, false
}

const (
	noEffect   = "has no effect here"
	nodeClocks = "is not used: clocks are the node's"
	wholeJobs  = "whole cores near the job's GPUs are chosen by the node"
)

// who: who and what.
func who() []option {
	return []option{
		{long: "--job-name", short: "-J", value: func(s *script, v string) error { s.spec.Name = v; return nil }},
		{long: "--account", short: "-A", value: func(s *script, v string) error { s.spec.Owner = &job.Owner{ProjectURN: v}; return nil }},
		{long: "--comment", value: label("comment")},
		{long: "--wckey", value: label("wckey")},
		{long: "--qos", short: "-q", value: (*script).qos},
		{long: "--partition", short: "-p", value: (*script).partition},
		{long: "--priority", value: priority(1)},
		{long: "--nice", value: priority(-1), flag: func(s *script) { s.spec.Gbatch.Priority = -100 }},
		{long: "--mail-type", value: func(s *script, v string) error { s.mailTypes = strings.Split(strings.ToUpper(v), ","); return nil }},
		{long: "--mail-user", value: func(s *script, v string) error { s.mailUser = v; return nil }},
	}
}

// howMuch: how much.
func howMuch() []option {
	return []option{
		{long: "--nodes", short: "-N", value: (*script).nodeCount},
		{long: "--ntasks", tasks: true, short: "-n", value: integer(func(s *script, n int64) { s.tasks = int(n) })},
		{long: "--ntasks-per-node", tasks: true, value: integer(func(s *script, n int64) { s.tasksPerNode = int(n) })},
		{long: "--tasks-per-node", tasks: true, value: integer(func(s *script, n int64) { s.tasksPerNode = int(n) })},
		{long: "--ntasks-per-gpu", tasks: true, env: "SLURM_NTASKS_PER_GPU", value: integer(func(s *script, n int64) { s.tasksPerGPU = int(n) })},
		{long: "--cpus-per-task", tasks: true, short: "-c", value: integer(func(s *script, n int64) { s.cpusPerTask = int(n) })},
		{long: "--mincpus", value: integer(func(s *script, n int64) { s.minCPUs = int(n) })},
		{long: "--cpus-per-gpu", env: "SLURM_CPUS_PER_GPU", value: integer(func(s *script, n int64) { s.cpusPerGPU = int(n) })},
		{long: "--mem", value: memory(func(s *script) *int64 { return &s.mem })},
		{long: "--mem-per-cpu", value: memory(func(s *script) *int64 { return &s.memPerCPU })},
		{long: "--mem-per-gpu", value: memory(func(s *script) *int64 { return &s.memPerGPU })},
		{long: "--gpus", short: "-G", env: "SLURM_GPUS", value: gpus(func(s *script) *GPUs { return &s.gpus })},
		{long: "--gpus-per-node", env: "SLURM_GPUS_PER_NODE", value: gpus(func(s *script) *GPUs { return &s.gpusPerNode })},
		{long: "--gpus-per-task", tasks: true, env: "SLURM_GPUS_PER_TASK", value: gpus(func(s *script) *GPUs { return &s.gpusPerTask })},
		{long: "--gres", value: (*script).gres},
		{long: "--exclusive", value: func(*script, string) error {
			return errors.New("nodes are one job's or shared by all, not one user's or group's")
		}, flag: func(s *script) { s.spec.Gbatch.Exclusive = true }, hint: "give --exclusive without a value for whole nodes, or remove it"},
		{long: "--tmp", value: parsed(func(s *script, mib int64) { s.spec.Gbatch.DiskGB = sizes.GiB(mib) }, sizes.Parse)},
	}
}

// where: where.
func where() []option {
	return []option{
		{long: "--constraint", short: "-C", value: (*script).constraint},
		{long: "--nodelist", short: "-w", value: (*script).nodelist},
		{long: "--reservation", value: (*script).reservation},
		{long: "--exclude", short: "-x", value: func(s *script, v string) (err error) {
			s.spec.Gbatch.ExcludeNodes, err = nodelist.Parse(v)
			return err
		}},
	}
}

// when: when.
func when() []option {
	return []option{
		{long: "--time", short: "-t", value: (*script).timeLimit},
		{long: "--time-min", value: parsed(func(s *script, d job.Duration) { s.spec.Gbatch.LimitMin = d }, minimum)},
		{long: "--licenses", short: "-L", value: (*script).licenses},
		{long: "--begin", short: "-b", value: func(s *script, v string) (err error) {
			s.spec.Request.Scheduling.NotBefore, err = begin(v, s.o)
			return err
		}},
		{long: "--deadline", value: func(s *script, v string) (err error) {
			s.deadline, err = begin(v, s.o)
			return err
		}},
		{long: "--array", short: "-a", value: (*script).array, hint: `write "0-99", "1,5,7-20:2" or, for at most 8 at once, "0-99%8"`},
		{long: "--dependency", short: "-d", value: (*script).dependency, hint: `write "afterok:12:13,afterany:14"`},
		{long: "--requeue", flag: func(s *script) { s.spec.Request.Scheduling.Restartable = true }},
		{long: "--no-requeue", flag: func(s *script) { s.spec.Request.Scheduling.Restartable = false }},
		{long: "--signal", value: (*script).signal},
	}
}

// inContainer: the container, by the names of the pyxis plug-in.
func inContainer() []option {
	return []option{
		{long: "--image", value: func(s *script, v string) error { s.image = v; return nil }},
		{long: "--container-image", value: func(s *script, v string) error {
			if s.o.Image != "" {
				s.note(0, "--container-image", "is not used: --image says another one")
				return nil
			}
			s.noImage = true // unless it is one
			if squashed(v) {
				return errors.New(notSquashed)
			}
			s.image, s.noImage = v, false
			return nil
		}},
		{long: "--container-mounts", value: (*script).mounts},
		{long: "--container-workdir", value: func(s *script, v string) error { s.spec.Request.Docker.WorkingDir = v; return nil }},
		{long: "--container-entrypoint", flag: func(s *script) { s.entrypoint = true }},
		{long: "--no-container-entrypoint", flag: func(s *script) { s.entrypoint = false }},
		{long: "--container-network", value: (*script).network},
		{long: "--container-env", note: "is not used: variables of the submitting shell are not passed on; name them with --export", value: func(*script, string) error { return nil }},
		{long: "--container-mount-home", note: "is not used: mount project storage with --container-mounts", flag: func(*script) {}},
		{long: "--no-container-mount-home", flag: func(*script) {}},
		{long: "--container-remap-root", flag: func(*script) {}, note: "is not used: the container runs as its image's user"},
		{long: "--no-container-remap-root", flag: func(*script) {}},
		{long: "--container-writable", flag: func(*script) {}},
		{long: "--container-name", instead: "every job has a fresh container: keep what must stay in project storage"},
		{long: "--container-save", instead: "every job has a fresh container: build the image before, and push it to a registry"},
		{long: "--container-readonly", instead: "the container's root is its own and gone with it: it needs no protection"},
	}
}

// program: the program.
func program() []option {
	return []option{
		{long: "--chdir", short: "-D", value: fileOption(func(s *script) *string { return &s.workDir })},
		{long: "--export", value: (*script).export},
		{long: "--output", short: "-o", value: fileOption(func(s *script) *string { return &s.stdio.Output })},
		{long: "--error", short: "-e", value: fileOption(func(s *script) *string { return &s.stdio.Error })},
		{long: "--input", short: "-i", value: fileOption(func(s *script) *string { return &s.stdio.Input })},
		{long: "--open-mode", value: (*script).openMode},
		{long: "--get-user-env", value: userEnv, flag: func(s *script) { s.variable("SLURM_GET_USER_ENV", "1") }, note: "is not used: the container has its image's environment"},
		{long: "--propagate", value: nothing, flag: func(*script) {}, note: "is not used: resource limits are the node's"},
		{long: "--kill-on-invalid-dep", value: nothing, note: "is always so: a job whose dependency can no longer come true fails"},
		{long: "--verbose", short: "-v", flag: func(*script) {}},
		{long: "--quiet", short: "-Q", own: true, flag: func(*script) {}},
	}
}

// inside: about the node's inside.
func inside() []option {
	return []option{
		{long: "--distribution", short: "-m", value: (*script).distribution},
		{long: "--hint", value: (*script).hints, note: noEffect + ": " + wholeJobs},
		{long: "--threads-per-core", env: "SLURM_THREADS_PER_CORE", value: nothing, note: noEffect + ": " + wholeJobs},
		{long: "--cpu-bind", value: nothing, note: noEffect + ": " + wholeJobs},
		{long: "--ntasks-per-core", env: "SLURM_NTASKS_PER_CORE", value: nothing, note: noEffect + ": " + wholeJobs},
		{long: "--overcommit", short: "-O", flag: func(s *script) { s.variable("SLURM_OVERCOMMIT", "1") }, note: "is for srun in the script: the job gets cores for its tasks in any case"},
		{long: "--wait-all-nodes", value: nothing, note: "is always so: a job begins when all of its nodes are ready"},
		{long: "--gpu-bind", env: "SLURM_GPU_BIND", value: nothing},
		{long: "--mem-bind", value: (*script).memBind, note: noEffect + ": " + wholeJobs},
		{long: "--spread-job", flag: func(*script) {}, note: noEffect},
		{long: "--use-min-nodes", flag: func(*script) {}, note: noEffect},
		{long: "--contiguous", flag: func(*script) {}, note: noEffect + ": nodes near each other are preferred in any case"},
		{long: "--switches", value: nothing, note: noEffect + ": nodes near each other are preferred in any case"},
		{long: "--prefer", value: nothing, note: "is not used: it would only be preferred"},
		{long: "--extra-node-info", short: "-B", value: nothing, note: noEffect + ": " + wholeJobs},
		{long: "--gres-flags", value: nothing, note: noEffect + ": " + wholeJobs},
		{long: "--profile", value: (*script).profile, note: "is not used: gacct and the metrics have what jobs use"},
		{long: "--acctg-freq", value: nothing, note: "is not used: what jobs use is measured at the node's own pace"},
		{long: "--no-kill", short: "-k", value: nothing, flag: func(*script) {}, note: "is not used: a job whose node fails has failed"},
		{long: "--delay-boot", value: nothing, note: noEffect},
		{long: "--ignore-pbs", flag: func(s *script) { s.ignoreOthers = true }},
		{long: "--oversubscribe", short: "-s", flag: func(*script) {}, note: noEffect + ": a job has its cores and GPUs for itself; for a share of a GPU ask for --gpus 0.5 by gsubmit"},
	}
}

// elsewhere: what is somebody else's.
func elsewhere() []option {
	return []option{
		{long: "--hold", short: "-H", own: true, instead: "submit it with gsubmit --hold"},
		{long: "--wait", short: "-W", own: true, instead: "submit it with gsubmit --wait"},
		{long: "--parsable", own: true, instead: "gsubmit prints the number alone when its output is not a terminal"},
		{long: "--test-only", own: true, instead: "use gsubmit --dry-run"},
		{long: "--wrap", instead: "use gsubmit --image NAME -- COMMAND"},
		{long: "--uid", instead: "a job belongs to whoever submits it"},
		{long: "--gid", instead: "the project's group is given by its storage"},
		{long: "--cluster", value: (*script).clusters},
		{long: "--clusters", short: "-M", value: (*script).clusters},
		{long: "--gpus-per-socket", instead: "give --gpus-per-node"},
		{long: "--sockets-per-node", instead: "give --cpus-per-task"},
		{long: "--cores-per-socket", instead: "give --cpus-per-task"},
		{long: "--ntasks-per-socket", tasks: true, value: integer(func(s *script, n int64) { s.perSocket = true }), note: noEffect + ": " + wholeJobs},
		{long: "--core-spec", short: "-S", instead: "the node keeps cores for itself by its own configuration"},
		{long: "--cpu-freq", value: nothing, note: nodeClocks},
		{long: "--gpu-freq", value: nothing, note: nodeClocks},
		{long: "--nodefile", short: "-F", instead: "name them with --nodelist"},
		{long: "--network", value: nothing, note: "is not used: Slurm hands it to plug-ins for interconnects of one maker; --container-network=host is the nodes' own network"},
		{long: "--bb", instead: "name inputs and outputs in a native job: gbatch.inputs"},
		{long: "--bbf", instead: "name inputs and outputs in a native job: gbatch.inputs"},
		{long: "--power", instead: "remove it"},
		{long: "--reboot", instead: "ask an operator"},
		{long: "--batch", instead: "the script runs on the first node: give all nodes the feature with --constraint"},
		{long: "--cluster-constraint", instead: "choose the controller with GBATCH_CONTROLLER"},
		{long: "--container", instead: "bundles are not read: name an image with --container-image"},
		{long: "--export-file", instead: "name the variables with --export"},
		{long: "--mcs-label", instead: "for nodes without other jobs give --exclusive"},
		{long: "--module", instead: "the image has its own libraries, and the node those of its GPUs: remove it"},
		{long: "--thread-spec", instead: "the node keeps cores for itself by its own configuration"},
		{long: "--tres-bind", instead: "give --gpu-bind"},
		{long: "--tres-per-task", instead: "give --cpus-per-task and --gpus-per-task"},
		{long: "--volume", instead: "mount storage with --container-mounts"},
		{long: "--x11", instead: "use gexec --forward"},
	}
}

func nothing(*script, string) error { return nil }

// ClusterName is what Slurm's names call the only cluster that they know: that of
// the controller.
const ClusterName = "gbatch"

// CheckCluster says what is wrong with a name given for a cluster.
func CheckCluster(name string) error {
	if name == ClusterName || name == "all" {
		return nil
	}
	return fmt.Errorf("cluster %q is not known: there is %s; choose the controller with GBATCH_CONTROLLER", name, ClusterName)
}

// clusters takes names of clusters that must all be known. sbatch names the one of
// its job in its answer.
func (s *script) clusters(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if err := CheckCluster(name); err != nil {
			return err
		}
	}
	if s.o.Own != nil {
		s.o.Own["--clusters"] = v
	}
	return nil
}

func label(name string) func(*script, string) error {
	return func(s *script, v string) error {
		foreign.Set(&s.spec.Gbatch.Labels, name, v)
		return nil
	}
}

func integer(set func(*script, int64)) func(*script, string) error {
	return parsed(set, func(v string) (int64, error) {
		n, err := wholeNumber(v)
		if err == nil && n == 0 {
			err = errors.New("must be above 0")
		}
		if err == nil && n > 1_000_000 {
			err = errors.New("is too large")
		}
		return n, err
	})
}

// memory sets one of the ways to say how much. One of the command line takes the
// place of the script's.
func memory(of func(*script) *int64) func(*script, string) error {
	return parsed(func(s *script, mib int64) {
		if s.outside {
			s.mem, s.memPerCPU, s.memPerGPU = -1, -1, -1
		}
		*of(s) = mib
	}, sizes.Parse)
}

// gpus sets one of the ways to say how many, as memory does.
func gpus(of func(*script) *GPUs) func(*script, string) error {
	return parsed(func(s *script, g GPUs) {
		s.forgetGPUs()
		*of(s) = g
	}, ParseGPUs)
}

func (s *script) forgetGPUs() {
	if s.outside {
		s.gpus, s.gpusPerNode, s.gpusPerTask = GPUs{}, GPUs{}, GPUs{}
		for _, name := range []string{"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK"} {
			delete(s.variables, name)
		}
	}
}

// minimum reads --time-min.
func minimum(v string) (job.Duration, error) {
	d, limited, err := times.ParseSlurmLimit(v)
	if err == nil && !limited {
		err = errors.New("want a length of time")
	}
	return d, err
}

// parsed sets what a value means.
func parsed[T any](set func(*script, T), parse func(string) (T, error)) func(*script, string) error {
	return func(s *script, v string) error {
		x, err := parse(v)
		if err == nil {
			set(s, x)
		}
		return err
	}
}

// nearest suggests an option that is spelt alike.
func (all options) nearest(name string) string {
	if found := all.short(name); len(found) > 1 {
		return fmt.Sprintf("%s, %s and perhaps others begin so: write the name in full", found[0].long, found[1].long)
	}
	var known []string
	for _, o := range all {
		known = append(known, o.long)
	}
	if word := document.Nearest(name, known); word != "" {
		return fmt.Sprintf("did you mean %s?", word)
	}
	return "docs/formats.md lists the options"
}
