package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// steps is the table of what srun started in the job.
func steps(a *cli.App, d *api.JobDetail) *table.Grid {
	columns := []string{"STEP", "NAME", "TASKS", "CORES", "GPUS", "NODES", "STATE", "EXIT", "TIME"}
	images := slices.ContainsFunc(d.Steps, func(s api.Step) bool { return s.Image != "" })
	if images {
		columns = append(columns, "IMAGE")
	}
	t := table.New(columns...)
	t.Right(3, 4, 5, 8, 9)
	for _, s := range d.Steps {
		end, exit := s.Ended, "-"
		if end.IsZero() {
			end = a.Now()
		} else {
			exit = strconv.Itoa(s.Code)
		}
		row := []string{fmt.Sprintf("%s.%d", jobs.ID(&d.Job), s.Number), s.Name, strconv.Itoa(s.Tasks), strconv.Itoa(s.CPUs), strconv.Itoa(s.GPUs),
			human.Hosts(s.Nodes), jobs.StepState(&s), exit, string(human.Duration(nil, int64(end.Sub(s.Begun).Seconds())))}
		if images {
			row = append(row, cmp.Or(s.Image, "-"))
		}
		t.Row(row...)
	}
	return t
}
