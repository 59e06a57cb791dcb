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

// TestWhere: on which nodes tasks start is where Slurm 22.05 started them with the
// same options, in a job of three nodes and six tasks, and outside of it by --jobid.
func TestWhere(t *testing.T) {
	const two, one = "; run 2 processes on 3 nodes, setting nnodes to 2", "; run 1 processes on 3 nodes, setting nnodes to 1"
	inJob := map[string]string{"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "3", "SLURM_NNODES": "3", "SLURM_NTASKS": "6", "SLURM_NPROCS": "6"}
	outside := map[string]string{"SLURM_JOB_ID": "1"}
	for _, tc := range []struct {
		env        map[string]string
		line, want string
	}{
		{inJob, "", "a2 b2 c2"},
		{inJob, "-w b", "a2 b2 c2"},
		{inJob, "-w b,b,c", "a2 b2 c2"},
		{inJob, "-w b -n2", "a1 b1" + two},
		{inJob, "-w c -n2", "a1 c1" + two},
		{inJob, "-w b,c -n2", "b1 c1" + two},
		{inJob, "-w a,b,c -n2", "a1 b1" + two},
		{inJob, "-w b -n1", "b1" + one},
		{inJob, "-w b,c -n1", "b1" + one},
		{inJob, "-w c,b -n3", "a1 b1 c1"},
		{inJob, "-w b -N1", "b6"},
		{inJob, "-w b -N1 -n2", "b2"},
		{inJob, "-w c -N2", "a3 c3"},
		{inJob, "-w b,c -N2", "b3 c3"},
		{inJob, "-w c,b -n4 -N2", "b2 c2"},
		{inJob, "-w b,c -N1", "b6; Required nodelist includes more nodes than permitted by max-node count (2 > 1). Eliminating nodes from the nodelist."},
		{inJob, "-w b -N1-2", "b6"},
		{inJob, "-w b,c -N1-2", "b3 c3"},
		{inJob, "-w b,c -N1-3", "b3 c3"},
		{inJob, "-w c -N2-3", "a2 b2 c2"},
		{inJob, "-x a", "Only allocated 2 nodes asked for 3"},
		{inJob, "-x a -n2", "b1 c1" + two},
		{inJob, "-x a -N2", "b3 c3"},
		{inJob, "-x a -N1", "b6"},
		{inJob, "-x a -N3", "Only allocated 2 nodes asked for 3"},
		{inJob, "-x a,b,c", "Hostlist is empty!  Can't run job."},
		{inJob, "-x a -N1-2", "b3 c3"},
		{inJob, "-x a -N1-3", "b3 c3"},
		{inJob, "-r1", "--relative and SLURM_JOB_NUM_NODES option incompatible with count of allocated nodes (1+3>3)"},
		{inJob, "-r1 -n2", "b1 c1" + two},
		{inJob, "-r1 -n1", "b1" + one},
		{inJob, "-r2 -n2", "--relative and --nodes option incompatible with count of allocated nodes (2+2>3)"},
		{inJob, "-r1 -N1", "b6"},
		{inJob, "-r1 -N2", "b3 c3"},
		{inJob, "-r1 -N1-2", "b3 c3"},
		{inJob, "-r1 -N1-3", "b3 c3"},
		{inJob, "-r3 -N1", "--relative and --nodes option incompatible with count of allocated nodes (3+1>3)"},
		{inJob, "-w b -r1", "-r,--relative not allowed with -w,--nodelist or -x,--exclude."},
		{inJob, "-w c -x c", "Requested node c is also in the excluded list."},
		{outside, "", "a1 b1 c1"},
		{outside, "-w b", "b1"},
		{outside, "-w b,c", "b1 c1"},
		{outside, "-w b -n3", "b3"},
		{outside, "-x a", "b1 c1"},
		{outside, "-r1 -N1", "b1"},
		{outside, "-w b --ntasks-per-node=2", "b2"},
	} {
		info := &launch.Info{Nodes: []launch.Node{{Name: "a", CPUs: 8}, {Name: "b", CPUs: 8}, {Name: "c", CPUs: 8}}}
		if diff := cmp.Diff(tc.want, placed(t, info, tc.env, tc.line)); diff != "" {
			t.Errorf("srun %s (-want +got):\n%s", tc.line, diff)
		}
	}
}

// placed are the nodes of a step, each with how many tasks it has, and warnings.
func placed(t *testing.T, info *launch.Info, env map[string]string, line string) string {
	t.Helper()
	o, err := parse(append(strings.Fields(line), "true"), func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil {
		return err.Error()
	}
	r := &run{info: info, o: o}
	if err := r.count(); err != nil {
		return err.Error()
	}
	l, err := info.Plan(info.AllFree(), o.q)
	if err != nil {
		return err.Error()
	}
	var got []string
	for _, at := range l.Placed {
		got = append(got, fmt.Sprintf("%s%d", info.Nodes[at.Rank].Name, len(at.Tasks)))
	}
	text := strings.Join(got, " ")
	for _, w := range r.warnings {
		text += "; " + strings.TrimPrefix(strings.TrimPrefix(w, "srun: Warning: "), "can't ")
	}
	return text
}
