package srun

import (
	"fmt"
	"os"
	"strconv"

	"gbatch/internal/launch"
)

// count decides how many tasks there are, on how many nodes. As with Slurm, a number
// of tasks wins, of the command line over the script's, over one of tasks per node,
// which counts where there is none.
func (r *run) count() error {
	o, q, all := r.o, &r.o.q, len(r.info.Nodes)
	if o.jobNodes > 0 && q.Nodes == 0 && o.jobNodes != all {
		if o.jobNodes > all {
			return fmt.Errorf("SLURM_JOB_NUM_NODES environment variable conflicts with allocated node count (%d != %d).", o.jobNodes, all) //nolint:staticcheck // the words are Slurm's
		}
		q.Nodes, q.MaxNodes = o.jobNodes, o.jobNodes
	}
	if o.bare && q.Tasks == 0 && q.PerNode == 0 && q.TasksPerGPU == 0 && q.GPUsPerTask == nil {
		q.Tasks, q.PerNode = r.info.Tasks, r.info.PerNode
	}
	if q.Tasks == 0 && q.PerNode == 0 && q.TasksPerGPU == 0 && q.GPUsPerTask == nil {
		if o.pty {
			q.Tasks = 1
		} else {
			q.Tasks = fitting(r.info.Nodes, q)
		}
	}
	nodes := all
	if q.Nodes > 0 {
		nodes = q.Nodes
	} else if o.jobNodes == 0 && len(q.On) > 0 {
		nodes = len(unique(q.On))
	}
	fewer := q.Tasks > 0 && q.Tasks < nodes
	if err := r.where(fewer); err != nil {
		return err
	}
	if fewer {
		if !o.pty {
			r.warn("can't run %d processes on %d nodes, setting nnodes to %d", q.Tasks, nodes, q.Tasks)
		}
		nodes = q.Tasks
		q.Nodes = min(q.Nodes, nodes)
		q.MaxNodes = min(q.MaxNodes, nodes)
	}
	r.perNode = q.PerNode
	if q.Tasks == 0 || q.PerNode == 0 {
		return nil
	}
	q.PerNode = 0
	if q.Tasks/nodes != r.perNode {
		if q.Tasks > r.perNode {
			r.warn("can't honor --ntasks-per-node set to %d which doesn't match the requested tasks %d with the number of requested nodes %d. Ignoring --ntasks-per-node.", r.perNode, q.Tasks, nodes)
		}
		r.perNode = 0
	}
	return nil
}

func (r *run) warn(format string, args ...any) {
	r.warnings = append(r.warnings, "srun: Warning: "+fmt.Sprintf(format, args...))
}

// inherit gives each task the cores that the script asked for, as its variable says
// now, where they are there. Slurm gives one and binds to none: what starts there has
// to start here.
func (r *run) inherit() {
	q := &r.o.q
	if q.CPUs > 0 {
		return
	}
	if q.CPUs = r.o.jobCPUs; r.o.bare {
		q.CPUs = r.info.CPUsPerTask
	}
	if _, err := r.info.Plan(r.info.AllFree(), *q); err != nil {
		q.CPUs = 0
	}
}

// Counts are the variables by which a step has a number of its job that it was not
// told. Where one is empty, as where srun is called from without the job, it is as
// if it were not there.
var Counts = []string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_CPUS_PER_TASK"}

func forgetEmpty() {
	for _, name := range Counts {
		if v, ok := os.LookupEnv(name); ok && v == "" {
			_ = os.Unsetenv(name) // its name is one
		}
	}
}

// ofJob reads what the script's environment says of it. Without, as where something
// has cleaned it, the job itself is asked.
func (o *options) ofJob(env func(string) (string, bool)) {
	_, there := env("SLURM_JOB_ID")
	o.bare = !there
	number := func(names ...string) int {
		for _, name := range names {
			if v, ok := env(name); ok {
				n, _ := strconv.Atoi(v)
				return max(n, 0)
			}
		}
		return 0
	}
	o.jobNodes = number("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
	o.jobCPUs = number("SLURM_CPUS_PER_TASK")
}

// fitting is how many tasks a step has that says how many cores each gets, by
// --cpus-per-task or its variable, and nobody says how many there are: as many as
// these cores allow on its nodes, as with Slurm. 0: as without it.
func fitting(nodes []launch.Node, q *launchRequest) (tasks int) {
	if q.CPUs == 0 {
		return 0
	}
	if q.Nodes > 0 && q.Nodes < len(nodes) {
		nodes = nodes[:q.Nodes]
	}
	for _, n := range nodes {
		tasks += n.CPUs / q.CPUs
	}
	if tasks < len(nodes) {
		return 0
	}
	return tasks
}
