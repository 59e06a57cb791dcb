package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// What squeue -s prints where it is not told what.
const (
	stepsFormat = "%.15i %.8j %.9P %.8u %.9M %N"
	stepsOrder  = "P,i"
)

// stepColumns are squeue's of steps, by Slurm's letters and long names.
var stepColumns = table.Set[row]{
	ordered(col("i", "stepid", "STEPID", rowID), byNumber),
	col("A", "numtasks", "TASKS", func(_ *table.View, r *row) string { return fmt.Sprint(r.step.tasks) }),
	col("j", "stepname name", "NAME", rowName),
	ordered(col("", "jobid", "JOBID", func(_ *table.View, r *row) string { return fmt.Sprint(r.Number) }), byNumber),
	col("C", "numcpus", "CPUS", rowCPUs),
	col("D", "numnodes", "NODES", rowNumNodes),
	col("l", "timelimit", "TIME_LIMIT", always("UNLIMITED")),
	ordered(col("M", "timeused", "TIME", rowRan), func(v *table.View, r *row) int64 { return v.Now.Unix() - r.Started.Unix() }),
	col("N", "nodelist nodes", "NODELIST", rowNodes),
	col("P", "partition", "PARTITION", rowPartition),
	col("b", "tres-per-node gres", "TRES_PER_NODE", rowGres),
	timed(col("S", "starttime", "START_TIME", rowStart), func(r *row) time.Time { return jobs.SlurmStartOf(&r.Job) }),
	col("t", "statecompact", "ST", always("R")), col("T", "stepstate state", "STATE", rowState),
	col("u", "username", "USER", rowUser),
	col("U", "userid", "UID", rowUID),
}

// steps lists what runs in jobs that run: the steps that are named, or all.
func (q *queueView) steps(ctx context.Context, a *cli.App, s *selection, named []string) error {
	form, err := q.stepLayout()
	if err != nil {
		return err
	}
	order, err := stepColumns.Order(q.order)
	if err != nil {
		return err
	}
	for _, id := range named {
		of, _, _ := cutStep(id)
		s.ids = append(s.ids, of)
	}
	rows, err := s.stepRows(ctx, a, named)
	if err != nil {
		return err
	}
	view := viewOf(a)
	view.As, view.NoHeader = "slurm", q.noHeader
	order.Sort(rows, view)
	return form.Write(a.Out, rows, view)
}

// stepRows are the steps that run of jobs that run: those that are named, or all.
func (s *selection) stepRows(ctx context.Context, a *cli.App, named []string) ([]row, error) {
	slices.Sort(s.ids)
	s.ids, s.steps = slices.Compact(s.ids), true
	list, err := s.list(ctx, a)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, j := range list {
		if j.State.Active() {
			rows = append(rows, row{PastJob: api.PastJob{Job: j}})
		}
	}
	rows = only(withSteps(rows, false), named)
	return slices.DeleteFunc(rows, func(r row) bool { return r.step == nil || !r.Ended.IsZero() }), nil
}

func (q *queueView) stepLayout() (table.Layout[row], error) {
	switch {
	case q.format != "":
		return stepColumns.Format(q.format)
	case q.long != "":
		return stepColumns.Long(q.long)
	}
	return stepColumns.Format(stepsFormat)
}
