package slurm

import (
	"context"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// points is a column of a term of a job's priority.
func points(letters, name, title string, of func(p *api.Priority) int64) column {
	return col(letters, name, title, func(_ *table.View, r *row) string { return itoa(of(r.Factors)) })
}

func nothing(*api.Priority) int64 { return 0 }

// sprioColumns are sprio's. What Slurm has no factor for, and is not the user's
// own adjustment, is in SITE.
var sprioColumns = table.Set[row]{
	ordered(col("i", "jobid", "JOBID", rowNumber), byNumber), col("r", "partition", "PARTITION", rowPartition), col("u", "user", "USER", rowUser), col("o", "account", "ACCOUNT", rowAccount),
	col("n", "qosname", "QOSNAME", rowQOS), col("c", "cluster", "CLUSTER", always(clusterName)),
	ordered(col("Y", "priority", "PRIORITY", rowPriority), func(_ *table.View, r *row) int64 { return r.priority() }), col("y", "normpriority", "PRIORITY", rowPriorityShare),
	points("S", "site", "SITE", func(p *api.Priority) int64 { return p.Slowdown }), points("A", "age", "AGE", func(p *api.Priority) int64 { return p.Age }),
	points("B", "assoc", "ASSOC", nothing), points("F", "fairshare", "FAIRSHARE", func(p *api.Priority) int64 { return p.FairShare }),
	points("J", "jobsize", "JOBSIZE", func(p *api.Priority) int64 { return p.Size + p.Small }), points("P", "partitionpoints", "PARTITION", func(p *api.Priority) int64 { return p.Partition }),
	points("Q", "qos", "QOS", func(p *api.Priority) int64 { return p.QOS }), points("N", "nice", "NICE", func(p *api.Priority) int64 { return -p.User }),
	col("T", "tres", "TRES", always("")),
}

// sprio shows what the priorities of waiting jobs are made of.
func sprio(ctx context.Context, a *cli.App, args []string) error {
	var ids, users, parts []string
	var named clusters
	format, order, noHeader, wide := "%.15i %9r %.10Y %.10S %.10A %.10F %.10J %.10Q", "i", false, false
	rest, err := getopt.Parse(args, []getopt.Option{
		getopt.List(&ids, "-j", "--jobs"), getopt.List(&users, "-u", "--user"), getopt.List(&parts, "-p", "--partition"), getopt.String(&format, "-o", "--format"), getopt.String(&order, "-S", "--sort"),
		getopt.Bool(&noHeader, "-h", "--noheader"), getopt.Bool(&wide, "-l", "--long"), named.option(), getopt.Ignored("-v", "--verbose", "--local", "--federation", "--sibling"),
		getopt.Instead("the weights are in gadm policy", "-w", "--weights"), getopt.Instead("gqueue explain JOB shows the terms", "-n", "--norm"),
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return exit.Usagef("%q is no option; name jobs by -j", rest[0])
	}
	if err := named.check(); err != nil {
		return err
	}
	if wide {
		format = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
	}
	form, err := sprioColumns.Format(format)
	if err != nil {
		return err
	}
	by, err := sprioColumns.Order(order)
	if err != nil {
		return err
	}
	l, err := a.Client.Jobs(ctx, client.JobFilter{States: []job.State{job.Queued}, Factors: true})
	if err != nil {
		return err
	}
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	var rows []row
	for _, j := range l.Jobs {
		r := row{PastJob: api.PastJob{Job: j}}
		if j.Factors != nil && has(users, j.User) && has(ids, rowNumber(nil, &r)) && inParts(parts, &j) {
			rows = append(rows, r)
		}
	}
	v := table.View{Now: a.Now(), NoHeader: noHeader}
	by.Sort(rows, v)
	return form.Write(a.Out, rows, v)
}
