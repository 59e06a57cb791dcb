package job

import (
	"cmp"
	"strconv"
	"strings"

	"gbatch/internal/job/nodelist"
)

// slurmVariables are those of Slurm that scripts look for.
func slurmVariables(in EnvInput) []variable {
	if in.Spec.Launches() {
		return append(append(batchVariables(in), taskVariables(in)...), arrayVariables(in)...)
	}
	return append(rankVariables(in), arrayVariables(in)...)
}

// rankVariables describe the rank as Slurm would describe the only task on
// its node.
func rankVariables(in EnvInput) []variable {
	job, rank := formatUint(uint64(in.ID.Job)), formatUint(uint64(in.ID.Rank))
	vs := []variable{
		{"SLURM_JOB_ID", job},
		{"SLURM_JOB_NAME", in.Spec.Name},
		{"SLURM_JOB_ACCOUNT", in.Project},
		{"SLURM_JOB_USER", in.User},
		{"SLURM_JOB_PARTITION", in.slurmPartition()},
		{"SLURM_JOB_NODELIST", strings.Join(in.Nodes, ",")},
		{"SLURM_JOB_NUM_NODES", strconv.Itoa(len(in.Nodes))},
		{"SLURM_NNODES", strconv.Itoa(len(in.Nodes))},
		{"SLURM_NODEID", rank},
		{"SLURM_PROCID", rank},
		{"SLURM_LOCALID", "0"},
		{"SLURMD_NODENAME", in.Node},
		{"SLURM_CPUS_ON_NODE", strconv.Itoa(len(in.Cores))},
		{"SLURM_CPUS_PER_TASK", strconv.Itoa(len(in.Cores))},
		{"SLURM_MEM_PER_NODE", strconv.FormatInt(in.MemoryBytes/mib, 10)},
		{"SLURM_RESTART_COUNT", strconv.Itoa(in.RestartCount)},
	}
	if len(in.GPUs) > 0 {
		vs = append(vs,
			variable{"SLURM_GPUS_ON_NODE", strconv.Itoa(len(in.GPUs))},
			variable{"SLURM_JOB_GPUS", joinInts(in.GPUs)})
	}
	return vs
}

// batchVariables describe the job of a batch script. What stands for an option
// that the script did not give is not set, as scripts ask for it. What it gave
// in words of its own is in its environment.
func batchVariables(in EnvInput) []variable {
	job, list, count := formatUint(uint64(in.ID.Job)), nodelist.Format(in.Nodes), strconv.Itoa(len(in.Nodes))
	g := in.Spec.gbatch()
	vs := []variable{
		{"ENVIRONMENT", "BATCH"},
		{"HOSTNAME", in.Node},
		{"TMPDIR", "/tmp"},
		{"SLURMD_NODENAME", in.Node},
		{"SLURM_CLUSTER_NAME", "gbatch"},
		{"SLURM_CPUS_ON_NODE", strconv.Itoa(len(in.Cores))},
		{"SLURM_GTIDS", formatUint(uint64(in.ID.Rank))},
		{"SLURM_JOBID", job},
		{"SLURM_JOB_ACCOUNT", in.Project},
		{"SLURM_JOB_CPUS_PER_NODE", nodelist.Repeats(in.cpusPerNode())},
		{"SLURM_JOB_GID", strconv.Itoa(in.GID)},
		{"SLURM_JOB_ID", job},
		{"SLURM_JOB_NAME", in.Spec.Name},
		{"SLURM_JOB_NODELIST", list},
		{"SLURM_JOB_NUM_NODES", count},
		{"SLURM_JOB_PARTITION", in.slurmPartition()},
		{"SLURM_JOB_UID", strconv.Itoa(in.UID)},
		{"SLURM_JOB_USER", in.User},
		{"SLURM_LOCALID", "0"},
		{"SLURM_NNODES", count},
		{"SLURM_NODEID", formatUint(uint64(in.ID.Rank))},
		{"SLURM_NODELIST", list},
		{"SLURM_NODE_ALIASES", "(null)"},
		{"SLURM_PRIO_PROCESS", "0"},
		{"SLURM_PROCID", formatUint(uint64(in.ID.Rank))},
		{"SLURM_TASK_PID", "1"},
		{"SLURM_TOPOLOGY_ADDR", in.Node},
		{"SLURM_TOPOLOGY_ADDR_PATTERN", "node"},
	}
	own := in.Spec.Request.Docker.Environment
	if own["SLURM_MEM_PER_CPU"] == "" && own["SLURM_MEM_PER_GPU"] == "" && !g.AllMemory {
		vs = append(vs, variable{"SLURM_MEM_PER_NODE", strconv.FormatInt(in.MemoryBytes/mib, 10)})
	}
	for _, v := range []variable{{"SLURM_JOB_QOS", cmp.Or(g.QOS, "normal")}, {"SLURM_SUBMIT_DIR", g.Launch.Directory}, {"SLURM_SUBMIT_HOST", g.Launch.Host}} {
		if v.value != "" {
			vs = append(vs, v)
		}
	}
	if in.RestartCount > 0 {
		vs = append(vs, variable{"SLURM_RESTART_COUNT", strconv.Itoa(in.RestartCount)})
	}
	if len(in.GPUs) > 0 {
		vs = append(vs,
			variable{"SLURM_GPUS_ON_NODE", strconv.Itoa(len(in.GPUs))},
			variable{"SLURM_JOB_GPUS", joinInts(in.GPUs)})
	}
	return vs
}

// taskVariables say how many tasks srun and launchers of MPI start.
func taskVariables(in EnvInput) []variable {
	l := in.Spec.gbatch().Launch
	perNode := l.tasksOn(in.cpusPerNode())
	vs := []variable{{"SLURM_TASKS_PER_NODE", nodelist.Repeats(perNode)}}
	total := 0
	for _, n := range perNode {
		total += n
	}
	if l.Tasks > 0 || l.PerNode > 0 {
		vs = append(vs, variable{"SLURM_NTASKS", strconv.Itoa(total)}, variable{"SLURM_NPROCS", strconv.Itoa(total)})
	}
	if l.PerNode > 0 {
		vs = append(vs, variable{"SLURM_NTASKS_PER_NODE", strconv.Itoa(l.PerNode)})
	}
	if l.CPUsPerTask > 0 {
		vs = append(vs, variable{"SLURM_CPUS_PER_TASK", strconv.Itoa(l.CPUsPerTask)})
	}
	if l.GPUsPerTask > 0 {
		vs = append(vs, variable{"SLURM_GPUS_PER_TASK", strconv.Itoa(l.GPUsPerTask)})
	}
	return vs
}

// tasksOn shares the tasks out over nodes with so many cores: evenly, and the
// first have one more. Where no number was given, as many as there are cores for.
func (l *Launch) tasksOn(cores []int) []int {
	tasks := make([]int, len(cores))
	for i := range tasks {
		switch {
		case l.Tasks > 0:
			tasks[i] = l.Tasks / len(tasks)
			if i < l.Tasks%len(tasks) {
				tasks[i]++
			}
		case l.PerNode > 0:
			tasks[i] = l.PerNode
		default:
			tasks[i] = max(1, cores[i]/max(l.CPUsPerTask, 1))
		}
	}
	return tasks
}

func (in EnvInput) cpusPerNode() []int {
	if len(in.CPUs) > 0 {
		return in.CPUs
	}
	all := make([]int, len(in.Nodes))
	for i := range all {
		all[i] = len(in.Cores)
	}
	return all
}

// slurmPartition is the partition that the job runs in, or the cluster by its number.
func (in EnvInput) slurmPartition() string { return cmp.Or(in.Partition, strconv.Itoa(in.ClusterID)) }
