package slurm

import (
	"cmp"
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// squeueColumns are squeue's: ours that have a letter, with its titles, and its
// cells where they differ.
var squeueColumns = jobs.Columns.With(
	column{Key: "id", Title: "JOBID"},
	column{Key: "project", Title: "ACCOUNT"},
	column{Key: "left", Title: "TIME_LEFT"},
	column{Key: "mem", Title: "MIN_MEMORY"},
	column{Key: "cluster", Title: "PARTITION"},
	column{Key: "array", Title: "ARRAY_JOB_ID"},
	column{Key: "index", Title: "ARRAY_TASK_ID"},
	column{Key: "st", Cell: cell(func(b []byte, j *api.Job) []byte { return append(b, shortStates[jobs.StateAs("slurm", j)]...) })},
	column{Key: "gpus", Cell: cell(func(b []byte, j *api.Job) []byte {
		if j.GPUs == 0 {
			return append(b, "N/A"...)
		}
		return human.Number(append(b, "gres/gpu:"...), j.GPUs)
	})},
	column{Key: "start", Title: "START_TIME", Cell: cell(func(b []byte, j *api.Job) []byte { return moment(b, jobs.StartOf(j)) })},
	column{Key: "end", Title: "END_TIME", Cell: cell(func(b []byte, j *api.Job) []byte { return moment(b, jobs.EndOf(j)) })},
	column{Key: "submitted", Title: "SUBMIT_TIME", Cell: cell(func(b []byte, j *api.Job) []byte { return moment(b, j.Submitted) })},
	column{Key: "limit", Title: "TIME_LIMIT", Cell: cell(func(b []byte, j *api.Job) []byte {
		if j.LimitS <= 0 {
			return append(b, "UNLIMITED"...)
		}
		return human.Duration(b, j.LimitS)
	})},
	column{Key: "nodes/reason", Title: "NODELIST(REASON)", Cell: cell(func(b []byte, j *api.Job) []byte {
		if len(j.Nodes) > 0 && !j.State.Pending() {
			return append(b, human.Hosts(j.Nodes)...)
		}
		return append(append(append(b, '('), cmp.Or(j.Reason, "None")...), ')')
	})},
	column{Key: "reason", Cell: cell(func(b []byte, j *api.Job) []byte { return append(b, cmp.Or(j.Reason, "None")...) })},
	column{Key: "nodelist", Cell: cell(func(b []byte, j *api.Job) []byte { return append(b, human.Hosts(j.Nodes)...) })},
)

type column = table.Column[api.Job]

// cell is a cell that is the same however it is looked at.
func cell(write func(b []byte, j *api.Job) []byte) func(*table.View, []byte, *api.Job) []byte {
	return func(_ *table.View, b []byte, j *api.Job) []byte { return write(b, j) }
}

func moment(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "N/A"...)
	}
	return t.Local().AppendFormat(b, human.ISO)
}

func squeue(ctx context.Context, a *cli.App, args []string) error {
	var s selection
	format, noHeader := "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R", false
	rest, err := parse(args, append(s.flags(), listOf(&s.ids, "-j", "--jobs", "--job"), listOf(&s.names, "-n", "--name"),
		stringOf(&format, "-o", "--format"), boolOf(&noHeader, "-h", "--noheader"), ignored("-a", "--all"), ignored("-r", "--array"), ignored("-v", "--verbose")))
	if err != nil {
		return err
	}
	s.ids = append(s.ids, rest...)
	form, err := squeueColumns.Format(format)
	if err != nil {
		return err
	}
	list, err := s.list(ctx, a)
	if err != nil {
		return err
	}
	return form.Write(a.Out, list, table.View{Now: a.Now(), As: "slurm", NoHeader: noHeader})
}
