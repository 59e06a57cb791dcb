package acct

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/node"
)

// use is what a job's last try used of what it asked for.
type use struct {
	Job      api.Job      `json:"job"`
	ElapsedS int64        `json:"elapsedS"`
	Ranks    int          `json:"ranks"`
	CPUTimeS float64      `json:"cpuTimeS"`
	CPUHeldS float64      `json:"cpuHeldS"` // cores x elapsed
	PeakMem  int64        `json:"peakMemBytes"`
	Mem      int64        `json:"memBytes"` // of one rank
	GPU      *node.GPUUse `json:"gpu,omitempty"`
	Advice   []string     `json:"advice,omitempty"`
}

// Eff is gacct eff.
type Eff struct {
	IDs []string `arg:"" name:"id" help:"Numbers, tasks, UUIDs or the beginning of a UUID."`
}

// Run prints what jobs used of what they asked for, also while they run.
func (o *Eff) Run(ctx context.Context, a *cli.App) error {
	if err := noIDs(a); err != nil {
		return err
	}
	return a.Each(o.IDs, func(id string) error {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return err
		}
		e, err := efficiency(d)
		switch {
		case err != nil:
			return err
		case a.Output.JSON:
			return a.WriteJSON(e)
		}
		return showEfficiency(a, e)
	})
}

func efficiency(d *api.JobDetail) (*use, error) {
	switch {
	case d.Private:
		return nil, api.Errorf(api.CodeDenied, "job %d belongs to project %s", d.Number, d.Project)
	case d.Tasks != nil:
		return nil, exit.Usagef("job %d is an array: name one of its tasks, as %d_0", d.Number, d.Number)
	case len(d.Attempts) == 0 || d.Used == nil:
		return nil, fmt.Errorf("job %d is %s and has not run: there is nothing to compare", d.Number, d.State)
	}
	at := d.Attempts[len(d.Attempts)-1]
	e := &use{Job: d.Job, ElapsedS: d.Used.ElapsedS, Ranks: len(at.Ranks), CPUTimeS: d.Used.CPUTimeS, PeakMem: d.Used.PeakMem, GPU: d.Used.GPU}
	e.Mem, e.CPUHeldS, e.Advice = d.Used.MemBytes, float64(d.Used.Cores)*float64(e.ElapsedS), d.Used.Advice
	return e, nil
}

func showEfficiency(a *cli.App, e *use) error {
	j := &e.Job
	head := fmt.Sprintf("Job %d (%s) of %s in %s, %s", j.Number, human.Clean(j.Name), human.Clean(j.User), human.Clean(j.Project), j.State)
	if e.Ranks > 1 {
		head += fmt.Sprintf(", %d containers", e.Ranks)
	}
	if err := a.Tell("%s", head); err != nil {
		return err
	}
	t := table.New("", "USED", "OF", "EFFICIENCY")
	t.Right(2, 3, 4)
	add := func(name, used, of string, part float64) {
		text := "-"
		if !math.IsNaN(part) && !math.IsInf(part, 0) {
			text = strconv.FormatFloat(100*part, 'f', 1, 64) + "%"
		}
		t.Row(name, used, of, text)
	}
	span := func(s float64) string { return string(human.Duration(nil, int64(s))) }
	add("CPU time", span(e.CPUTimeS), span(e.CPUHeldS), e.CPUTimeS/e.CPUHeldS)
	add("Memory, at most", string(human.Size(nil, e.PeakMem)), string(human.Size(nil, e.Mem)), float64(e.PeakMem)/float64(e.Mem))
	if g := e.GPU; g != nil {
		add("GPU, mean", fmt.Sprintf("%.1f", g.Utilization), "100.0", g.Utilization/100)
		add("GPU, at most", fmt.Sprintf("%.1f", g.MaxUtilization), "100.0", g.MaxUtilization/100)
		if g.Mem > 0 {
			add("GPU memory, at most", string(human.Size(nil, g.MaxMem)), string(human.Size(nil, g.Mem)), float64(g.MaxMem)/float64(g.Mem))
		}
	}
	if j.LimitS > 0 {
		add("Time limit", span(float64(e.ElapsedS)), span(float64(j.LimitS)), float64(e.ElapsedS)/float64(j.LimitS))
	}
	if err := t.Indent("  ").Fit(a.Term.Width).Write(a.Out); err != nil {
		return err
	}
	var lines []string
	if g := e.GPU; g != nil && g.EnergyJ > 0 {
		lines = append(lines, fmt.Sprintf("  GPU energy: %.1f Wh", g.EnergyJ/3600))
	}
	if e.GPU != nil && e.GPU.Simulated {
		lines = append(lines, "  The GPUs are simulated, and so are these figures of them.")
	}
	for _, line := range e.Advice {
		lines = append(lines, "Advice: "+human.Clean(line))
	}
	for _, line := range lines {
		if err := a.Tell("%s", line); err != nil {
			return err
		}
	}
	return nil
}
