package job

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job/expand"
)

// EnvInput is what a node knows of one rank when it starts it.
type EnvInput struct {
	Spec *Spec
	ID   RankID

	UUID         string
	User         string
	Project      string
	ProjectGID   int
	UID, GID     int        // of the user, on the node
	Array        *ArrayTask // nil: the job is no task of an array
	RestartCount int        // times that the job, and those that it continues, were started before
	Initial      string     // UUID of the first job that it continues; empty: none

	ClusterID   int
	Partition   string // that it runs in; empty: it named none
	Node        string // name of the node
	DNSName     string // its full host name
	Address     string // of the rank, in its own network or its gang's; the node's if it has that one's
	HostAddress string // of the node
	InstanceID  string // of the running node daemon
	PID         int    // of the node daemon
	WorkerID    string // of the place on the node; GPULab has several workers on one
	Version     string

	Cores       []int    // granted core ids
	GPUs        []int    // granted GPU indexes of the node
	GPUUUIDs    []string // of the same GPUs in the same order
	MemoryBytes int64

	Nodes      []string // node names in rank order; empty: this one alone
	Addresses  []string // their addresses, in the same order
	Slots      []int    // their GPUs, in the same order
	CPUs       []int    // their cores, in the same order; empty: as many as here
	MasterPort int      // of rank 0, for rendezvous; 0: not set

	Ports []PortMapping // with the node's ports chosen
}

// Environment is what a container gets on top of its image's environment, as
// NAME=value, in an order that depends on the input alone: GPULab's variables
// and ours, which a job cannot change, then those of Slurm that scripts look
// for and MASTER_ADDR, which it can, those of the rank and the job's own, by name.
//
// A batch script has all of Slurm's, with Slurm's meaning. Another job's leave
// out SLURM_NTASKS, SLURM_JOBID, SLURM_NODELIST and SLURM_TASKS_PER_NODE on
// purpose: launchers such as mpirun and Lightning take them as a sign that srun
// started one process for each GPU, and then wait for it or refuse.
func Environment(in EnvInput) []string {
	if len(in.Nodes) == 0 {
		in.Nodes = []string{in.Node}
	}
	own, gid := in.Spec.Request.Docker.Environment, in.Spec.Request.Docker.ProjectGIDVariable
	ofRank := in.Spec.own(int(in.ID.Rank)).Environment
	var env []string
	for _, v := range slices.Concat(gpulabVariables(in), gbatchVariables(in), sourceVariables(in)) {
		env = append(env, v.name+"="+v.value)
	}
	for _, p := range in.Ports {
		env = append(env, "GBATCH_PORT_"+strconv.Itoa(p.ContainerPort)+"="+strconv.Itoa(p.HostPort))
	}
	for _, v := range slices.Concat(slurmVariables(in), gangVariables(in)) {
		_, jobs := own[v.name]
		if _, ranks := ofRank[v.name]; !jobs && !ranks && v.name != gid {
			env = append(env, v.name+"="+v.value)
		}
	}
	env = appendOwn(env, in.Spec, ofRank)
	others := maps.Clone(own)
	maps.DeleteFunc(others, func(name, _ string) bool { _, is := ofRank[name]; return is })
	return appendOwn(env, in.Spec, others)
}

// appendOwn adds variables by name. What was there before them is known to them.
func appendOwn(env []string, s *Spec, own map[string]string) []string {
	known := told(s, env)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		value := own[name]
		if s.gbatch().ExpandVariables {
			value = expand.Variables(value, known)
		}
		env = append(env, name+"="+value)
	}
	return env
}

type variable struct{ name, value string }

// gpulabVariables are GPULab's fifteen, and the one that the job names for its
// project's gid. GPULab does not say how it writes what is reserved: here
// CPUS and GPUS are lists of ids, and MEM is in MiB with an "m" behind it. A job
// that continues none is its own first job, so that a script may compare them.
func gpulabVariables(in EnvInput) []variable {
	vs := []variable{
		{"GPULAB_CLUSTER_ID", strconv.Itoa(in.ClusterID)},
		{"GPULAB_CPUS_RESERVED", joinInts(in.Cores)},
		{"GPULAB_GPUS_RESERVED", joinInts(in.GPUs)},
		{"GPULAB_JOB_ID", in.UUID},
		{"GPULAB_MEM_RESERVED", strconv.FormatInt(in.MemoryBytes/mib, 10) + "m"},
		{"GPULAB_PROJECT", in.Project},
		{"GPULAB_RESTART_COUNT", strconv.Itoa(in.RestartCount)},
		{"GPULAB_RESTART_INITIAL_JOB_ID", cmp.Or(in.Initial, in.UUID)},
		{"GPULAB_SLAVE_DNSNAME", in.DNSName},
		{"GPULAB_SLAVE_HOSTNAME", in.Node},
		{"GPULAB_SLAVE_INSTANCE_ID", in.InstanceID},
		{"GPULAB_SLAVE_PID", strconv.Itoa(in.PID)},
		{"GPULAB_USERNAME", in.User},
		{"GPULAB_VERSION", in.Version},
		{"GPULAB_WORKER_ID", in.WorkerID},
	}
	if name := in.Spec.Request.Docker.ProjectGIDVariable; name != "" {
		vs = append(vs, variable{name, strconv.Itoa(in.ProjectGID)})
	}
	return vs
}

func gbatchVariables(in EnvInput) []variable {
	return []variable{
		{"GBATCH_JOB_ID", jobID(in)},
		{"GBATCH_JOB_NUMBER", formatUint(uint64(in.ID.Job))},
		{"GBATCH_JOB_NAME", in.Spec.Name},
		{"GBATCH_TASK", formatUint(uint64(in.ID.Task))},
		{"GBATCH_NUM_TASKS", strconv.Itoa(numTasks(in))},
		{"GBATCH_ATTEMPT", formatUint(uint64(in.ID.Attempt))},
		{"GBATCH_RESTART_COUNT", strconv.Itoa(in.RestartCount)},
		{"GBATCH_INITIAL_JOB_ID", cmp.Or(in.Initial, in.UUID)},
		{"GBATCH_RANK", formatUint(uint64(in.ID.Rank))},
		{"GBATCH_NUM_NODES", strconv.Itoa(len(in.Nodes))},
		{"GBATCH_NODES", strings.Join(in.Nodes, ",")},
		{"GBATCH_NODE_ADDRESSES", strings.Join(in.Addresses, ",")},
		{"GBATCH_ADDRESS", in.Address},
		{"GBATCH_HOST_ADDRESS", in.HostAddress},
		{"GBATCH_NUM_CPUS", strconv.Itoa(len(in.Cores))},
		{"GBATCH_NUM_GPUS", numGPUs(in)},
		{"GBATCH_GPU_UUIDS", strings.Join(in.GPUUUIDs, ",")},
		{"GBATCH_PARTITION", in.Partition},
		{"GBATCH_MEMORY_BYTES", strconv.FormatInt(in.MemoryBytes, 10)},
	}
}

// numGPUs counts what was granted; a share stays a fraction.
func numGPUs(in EnvInput) string {
	if g := in.Spec.Request.Resources.GPUs; 0 < g && g < 1 {
		return strconv.FormatFloat(g, 'f', -1, 64)
	}
	return strconv.Itoa(len(in.GPUs))
}

// arrayVariables tell a task which one it is, in Slurm's words, and for jobs that
// come from there in Kubernetes'. Slurm's are set for a task alone: scripts find
// out by them that they are one.
func arrayVariables(in EnvInput) []variable {
	a := in.Array
	var vs []variable
	if g := in.Spec.Gbatch; g != nil && (g.Source == "ccluster" || g.Source == "kubernetes") {
		vs = append(vs, variable{"JOB_COMPLETION_INDEX", formatUint(uint64(in.ID.Task))}, variable{"JOB_COMPLETIONS", strconv.Itoa(numTasks(in))})
	}
	if a == nil {
		return vs
	}
	return append(vs, []variable{
		{"SLURM_ARRAY_JOB_ID", formatUint(uint64(a.Parent))},
		{"SLURM_ARRAY_TASK_ID", strconv.Itoa(a.Index)},
		{"SLURM_ARRAY_TASK_COUNT", strconv.Itoa(a.Count)},
		{"SLURM_ARRAY_TASK_MIN", strconv.Itoa(a.First)},
		{"SLURM_ARRAY_TASK_MAX", strconv.Itoa(a.Last)},
		{"SLURM_ARRAY_TASK_STEP", strconv.Itoa(max(a.Step, 1))},
	}...)
}

// TypedID is what people type for the job.
func TypedID(in EnvInput) string { return jobID(in) }

// jobID is what people type for the job: its number, or for a task 123_7.
func jobID(in EnvInput) string {
	if a := in.Array; a != nil {
		return formatUint(uint64(a.Parent)) + "_" + strconv.Itoa(a.Index)
	}
	return formatUint(uint64(in.ID.Job))
}

func numTasks(in EnvInput) int {
	if in.Array == nil {
		return 1
	}
	return in.Array.Count
}

// gangVariables tell the ranks of a gang where to meet.
func gangVariables(in EnvInput) []variable {
	if len(in.Addresses) < 2 || in.MasterPort == 0 {
		return nil
	}
	return []variable{
		{"GBATCH_HOSTFILE", HostfilePath},
		{"MASTER_ADDR", in.Addresses[0]},
		{"MASTER_PORT", strconv.Itoa(in.MasterPort)},
	}
}

func formatUint(n uint64) string { return strconv.FormatUint(n, 10) }

func joinInts(ids []int) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}
