package slurm

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// seff says what a job used of what it held, in the words of Slurm's script of
// that name.
func seff(ctx context.Context, a *cli.App, args []string) error {
	rest, err := getopt.Parse(args, []getopt.Option{getopt.Ignored("-f", "--noheader"), getopt.Instead("use gacct eff --json", "-j", "--json"), getopt.Instead("it prints no more", "-d", "-v", "--debug")})
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return exit.Usagef("Usage: seff JOBID")
	}
	d, err := a.Client.Job(ctx, rest[0], client.JobOptions{})
	if err != nil {
		return err
	}
	r := row{PastJob: api.PastJob{Job: d.Job, Used: d.Used, Attempts: d.Attempts}}
	v := table.View{Now: a.Now()}
	nodes, ran := jobs.NumNodes(&r.Job), jobs.Ran(&r.Job, v.Now)
	out := func(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }
	out("Job ID: %s\nCluster: %s\nUser/Group: %s/%s", rowNumber(&v, &r), clusterName, r.User, rowGroup(&v, &r))
	code, _ := exitPair(&r.Job)
	if r.State.Final() {
		out("State: %s (exit code %d)", rowState(&v, &r), code)
	} else {
		out("State: %s", rowState(&v, &r))
	}
	if r.CPUs > 1 {
		out("Nodes: %d\nCores per node: %d", nodes, r.CPUs/nodes)
	} else {
		out("Cores: %d", r.CPUs)
	}
	if r.Used == nil || ran == 0 {
		out("Efficiency not available for jobs in the %s state.", rowState(&v, &r))
		return nil
	}
	total, walltime := time.Duration(r.Used.CPUTimeS*float64(time.Second)), held(&v, &r)
	out("CPU Utilized: %s\nCPU Efficiency: %.2f%% of %s core-walltime\nJob Wall-clock time: %s", elapsed(total), 100*total.Seconds()/max(walltime.Seconds(), 1), elapsed(walltime), elapsed(ran))
	peak, memory := float64(r.Used.PeakMem), float64(r.memPerNode())
	out("Memory Utilized: %s%s\nMemory Efficiency: %.2f%% of %s", sized(peak), pick(nodes > 1, " (the node with most)", ""), 100*peak/max(memory, 1), sized(memory)+pick(nodes > 1, " per node", ""))
	if !r.State.Final() {
		out("WARNING: Efficiency statistics may be misleading for %s jobs.", rowState(&v, &r))
	}
	return nil
}

// sized is an amount of memory with two decimals.
func sized(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	return fmt.Sprintf("%.2f %s", n, units[i])
}
