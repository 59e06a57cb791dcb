package info

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// holding is what one user's jobs hold now, and how much waits.
type holding struct {
	User     string  `json:"user"`
	Running  int     `json:"running"` // jobs, and tasks of arrays
	GPUs     float64 `json:"gpus"`
	CPUs     int     `json:"cpus"`
	MemBytes int64   `json:"memBytes"`
	Waiting  int     `json:"waiting"`
	Wanted   float64 `json:"gpusWanted"` // by what waits
}

// holdings sums jobs up by user, who has most GPUs first.
func holdings(list []api.Job) []*holding {
	by := map[string]*holding{}
	for i := range list {
		j := &list[i]
		h := by[j.User]
		if h == nil {
			h = &holding{User: j.User}
			by[j.User] = h
		}
		switch {
		case j.Tasks != nil:
			h.Waiting += j.Tasks.NumWaiting
			h.Wanted += float64(j.Tasks.NumWaiting) * j.GPUs
		case j.State.Active():
			h.Running++
			h.GPUs += j.GPUs
			h.CPUs += j.CPUs
			h.MemBytes += j.MemBytes
		default:
			h.Waiting++
			h.Wanted += j.GPUs
		}
	}
	for _, h := range by { // parts of GPUs are thousandths
		h.GPUs, h.Wanted = math.Round(h.GPUs*1000)/1000, math.Round(h.Wanted*1000)/1000
	}
	return slices.SortedFunc(maps.Values(by), func(x, y *holding) int {
		return cmp.Or(cmp.Compare(y.GPUs, x.GPUs), cmp.Compare(y.CPUs, x.CPUs), cmp.Compare(y.Waiting, x.Waiting), cmp.Compare(x.User, y.User))
	})
}

// users lists who holds what.
func (o *Info) users(ctx context.Context, a *cli.App) error {
	found, err := a.Client.Jobs(ctx, client.JobFilter{})
	if err != nil {
		return err
	}
	list := holdings(found.Jobs)
	if a.Output.JSON {
		return a.WriteJSON(struct {
			Users []*holding `json:"users"`
		}{list})
	}
	t := table.New("USER", "RUNNING", "GPUS", "CPUS", "MEM", "WAITING", "GPUS WANTED").NoHeader(o.NoHeader).Right(2, 3, 4, 5, 6, 7)
	for _, h := range list {
		t.Row(h.User, strconv.Itoa(h.Running), gpuCount(h.GPUs), strconv.Itoa(h.CPUs), string(human.Size(nil, h.MemBytes)), strconv.Itoa(h.Waiting), gpuCount(h.Wanted))
	}
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func gpuCount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
