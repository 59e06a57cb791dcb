package slurm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// showSteps shows steps that run: of all jobs, or those that are named.
func (c *control) showSteps(ctx context.Context, args []string) error {
	named := jobList(args)
	s := selection{steps: true}
	for _, id := range named {
		of, _, _ := cutStep(id)
		s.ids = append(s.ids, of)
	}
	rows, err := s.stepRows(ctx, c.app, named)
	if err != nil {
		return err
	}
	if len(rows) == 0 && len(named) > 0 {
		fmt.Fprintf(c.app.Out, "Job step %s not found\n", human.Clean(strings.Join(named, ",")))
		return &exit.Error{Code: exit.Failure}
	}
	v := viewOf(c.app)
	var out []string
	for i := range rows {
		out = append(out, stepText(&v, &rows[i]))
	}
	return c.records(out)
}

// stepText is one step as scontrol shows it.
func stepText(v *table.View, r *row) string {
	tres := rowTRES(v, r)
	if r.step.name == batchStep {
		tres = none
	}
	return fmt.Sprintf("StepId=%s UserId=%s StartTime=%s TimeLimit=UNLIMITED\n   State=%s Partition=%s NodeList=%s\n   Nodes=%d CPUs=%d Tasks=%d Name=%s Network=(null)\n   TRES=%s\n   ResvPorts=(null)\n   CPUFreqReq=Default\n   SrunHost:Pid=(null):0\n",
		r.ID, rowUID(v, r), rowStart(v, r), r.step.state, rowPartition(v, r), cmp.Or(human.Hosts(r.Nodes), none), jobs.NumNodes(&r.Job), r.CPUs, r.step.tasks, human.Clean(r.Name), tres)
}
