package srun

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/launch"
)

// counted is what comes of srun in a job of two nodes with 8 cores each.
func counted(t *testing.T, variables, line string) string {
	t.Helper()
	env := map[string]string{"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2"}
	for _, kv := range strings.Fields(variables) {
		name, value, _ := strings.Cut(kv, "=")
		env["SLURM_"+name] = value
	}
	o, err := parse(append(strings.Fields(line), "true"), func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil {
		return err.Error()
	}
	info := &launch.Info{Nodes: []launch.Node{{Name: "a", CPUs: 8}, {Name: "b", CPUs: 8}}, Tasks: 7, PerNode: 7, CPUsPerTask: 7}
	r := &run{info: info, o: o}
	if err := r.count(); err != nil {
		return err.Error()
	}
	r.inherit()
	l, err := info.Plan(info.AllFree(), o.q)
	if err != nil {
		return err.Error()
	}
	var tasks []int
	for _, at := range l.Placed {
		tasks = append(tasks, len(at.Tasks))
	}
	got := fmt.Sprintf("%v per node %d cores %d", tasks, r.perNode, o.q.CPUs)
	for _, w := range r.warnings {
		w, _, _ = strings.Cut(strings.TrimPrefix(w, "srun: Warning: can't "), " which")
		got += "; " + w
	}
	return got
}

// TestCount: how many tasks start where is what Slurm 22.05 started with the same
// variables and the same options, in a job of two nodes.
func TestCount(t *testing.T) {
	const tasks4, two2 = "NTASKS=4 NPROCS=4", "NTASKS=4 NPROCS=4 NTASKS_PER_NODE=2"
	for _, tc := range []struct{ variables, line, want string }{
		{"", "", "[1 1] per node 0 cores 0"},
		{"", "--ntasks-per-node=3", "[3 3] per node 3 cores 0"},
		{"", "-n4 --ntasks-per-node=1", "[2 2] per node 0 cores 0; honor --ntasks-per-node set to 1"},
		{"", "-n3 --ntasks-per-node=1", "[2 1] per node 1 cores 0"},
		{"", "-n3 --ntasks-per-node=2", "[2 1] per node 0 cores 0; honor --ntasks-per-node set to 2"},
		{"", "-n2 --ntasks-per-node=2", "[1 1] per node 0 cores 0"},
		{"", "-N1 --ntasks-per-node=4", "[4] per node 4 cores 0"},
		{"", "-N1 -n2 --ntasks-per-node=1", "[2] per node 0 cores 0; honor --ntasks-per-node set to 1"},
		{"", "-n1", "[1] per node 0 cores 0; run 1 processes on 2 nodes, setting nnodes to 1"},
		{"", "-N2 -n1", "[1] per node 0 cores 0; run 1 processes on 2 nodes, setting nnodes to 1"},
		{"", "-N1 -n2", "[2] per node 0 cores 0"},
		{tasks4, "", "[2 2] per node 0 cores 0"},
		{tasks4, "--ntasks-per-node=1", "[2 2] per node 0 cores 0; honor --ntasks-per-node set to 1"},
		{tasks4, "--ntasks-per-node=2", "[2 2] per node 2 cores 0"},
		{tasks4, "-N1", "[4] per node 0 cores 0"},
		{tasks4, "-N1 --ntasks-per-node=4", "[4] per node 4 cores 0"},
		{tasks4, "-n2 --ntasks-per-node=1", "[1 1] per node 1 cores 0"},
		{two2, "", "[2 2] per node 2 cores 0"},
		{two2, "--ntasks-per-node=1", "[2 2] per node 0 cores 0; honor --ntasks-per-node set to 1"},
		{two2, "--ntasks-per-node=3", "[2 2] per node 0 cores 0; honor --ntasks-per-node set to 3"},
		{two2, "-n2", "[1 1] per node 0 cores 0"},
		{two2, "-N1", "[4] per node 0 cores 0; honor --ntasks-per-node set to 2"},
		{"NTASKS_PER_NODE=2", "", "[2 2] per node 2 cores 0"},
		{"NTASKS_PER_NODE=2", "-N1", "[2] per node 2 cores 0"},
		{"NTASKS=2 NPROCS=4", "", "[1 1] per node 0 cores 0"},
		{"NPROCS=1", "", "[1] per node 0 cores 0; run 1 processes on 2 nodes, setting nnodes to 1"},
		{"NTASKS=4 JOB_NUM_NODES=1", "", "[4] per node 0 cores 0"},
		{"NTASKS=4 NNODES=1", "", "[2 2] per node 0 cores 0"},
		{"NTASKS=4 JOB_NUM_NODES=3", "", "SLURM_JOB_NUM_NODES environment variable conflicts with allocated node count (3 != 2)."},
		{"NTASKS=4", "-N3", "Only allocated 2 nodes asked for 3"},
		{"NTASKS=4 CPUS_PER_TASK=2", "", "[2 2] per node 0 cores 2"},
		{"NTASKS=4 CPUS_PER_TASK=2", "-c1", "[2 2] per node 0 cores 1"},
		{"NTASKS=4 CPUS_PER_TASK=4", "", "[2 2] per node 0 cores 4"},
		{"NTASKS=1 CPUS_PER_TASK=8", "-N1 -n4", "[4] per node 0 cores 0"},
		{"NTASKS=4 CPUS_PER_TASK=2", "-n4 -N1 -c4", "More processors requested than permitted"},
	} {
		if diff := cmp.Diff(tc.want, counted(t, tc.variables, tc.line)); diff != "" {
			t.Errorf("%s srun %s (-want +got):\n%s", tc.variables, tc.line, diff)
		}
	}
}
