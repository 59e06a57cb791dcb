package jobs

import (
	"context"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/sched"
)

type explainInput struct {
	ID string `path:"id"`
}

// Explain says why a job waits, and what would help.
func (s *Queries) Explain(ctx context.Context, in *explainInput) (*api.Explanation, error) {
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if !s.Rights.MayTouch(access.Caller(ctx), j.Owner) {
		return nil, api.Errorf(api.CodeDenied, "job %d belongs to project %s", j.Number, j.Owner.Project)
	}
	out := api.Explanation{ID: j.ID(), Number: j.Number, State: j.Status()}
	if j.State == job.OnHold {
		code, text := wire.Held(j)
		out.Reasons = []api.Reason{{Code: code, Text: text}}
		out.Estimate = &api.Estimate{Text: "does not start while it is on hold"}
		return &out, nil
	}
	if j.State != job.Queued {
		return &out, nil
	}
	if j = s.waitingTask(&out, j); j == nil {
		return &out, nil
	}
	err = s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) {
		fillExplanation(&out, now, c.Explain(now, j.Number))
		out.Position, out.NumQueued = c.Position(now, j.Number)
		for _, a := range c.Advise(now, j.Number) {
			out.Advice = append(out.Advice, adviceToAPI(now, a))
		}
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func fillExplanation(out *api.Explanation, now sched.Time, e sched.Explanation) {
	if !e.Waiting {
		return // it has left the queue meanwhile
	}
	out.Estimate = estimateToAPI(now, e.Estimate)
	for _, r := range e.Estimate.Reasons {
		out.Reasons = append(out.Reasons, api.Reason{Code: string(r.Code), Text: r.Text, At: wire.Time(r.At)})
	}
	out.Priority = priorityToAPI(e.Factors)
	for _, id := range e.Before {
		out.Before = append(out.Before, job.Number(id))
	}
	out.NBefore = e.NBefore
	for _, n := range e.Nodes {
		out.Nodes = append(out.Nodes, api.NodeVerdict{
			Node: n.Node, Code: string(n.Code), Text: n.Text, FreeGPUs: float64(n.FreeGPUs) / 1000,
			FreeCPUs: int(n.FreeCPU / 1000), FreeMem: n.FreeMem << 20, At: wire.Time(n.At),
		})
	}
}

func priorityToAPI(f sched.Factors) *api.Priority {
	return &api.Priority{Total: f.Total, Age: f.Age, FairShare: f.FairShare, Size: f.Size, QOS: f.QOS, Partition: f.Partition, User: f.Adjustment,
		Slowdown: f.Slowdown, Small: f.Small, Boosted: f.Boosted}
}

// estimateToAPI puts an estimate into words.
func estimateToAPI(now sched.Time, e sched.Estimate) *api.Estimate {
	out := &api.Estimate{Now: e.Now}
	for _, r := range e.Ranks {
		out.Nodes = append(out.Nodes, r.Node)
	}
	switch {
	case e.Now:
		out.Text = "starts now"
	case e.Never:
		out.Text = "never starts as it is"
	case !e.Known:
		out.Text = "no start can be estimated"
	default:
		out.At = wire.Time(e.At)
		out.Text = fmt.Sprintf("starts in about %s", inWords(e.At-now))
		if e.AtLeast {
			out.Text = fmt.Sprintf("starts in %s at the earliest", inWords(e.At-now))
		}
	}
	return out
}

func inWords(d sched.Time) string {
	switch {
	case d < 2*sched.Minute:
		return fmt.Sprintf("%d s", max(d/sched.Second, 0))
	case d < 2*sched.Hour:
		return fmt.Sprintf("%d min", d/sched.Minute)
	case d < 2*sched.Day:
		return fmt.Sprintf("%.1f h", float64(d)/float64(sched.Hour))
	}
	return fmt.Sprintf("%.1f days", float64(d)/float64(sched.Day))
}

func adviceToAPI(now sched.Time, a sched.Advice) api.Advice {
	out := api.Advice{Change: a.Change, Now: a.Now, At: wire.Time(a.At), Nodes: a.Nodes, Text: "would start now"}
	if !a.Now {
		out.Text = "would start in about " + inWords(a.At-now)
	}
	if a.Saves > 0 {
		out.Text += fmt.Sprintf(", %s sooner", inWords(a.Saves))
	}
	out.Code = a.Code
	addChange(&out, a.Job)
	return out
}

// addChange says how to make the change of some advice: by an update, or by another
// document. Other changes are for people to write.
func addChange(out *api.Advice, as sched.Job) {
	s := as.Shape
	switch out.Code {
	case "shorter-limit":
		out.LimitS = int64(as.Limit / sched.Second)
	case "fewer-gpus":
		out.Resources = &api.Advised{GPUs: float64(s.MilliGPU) / 1000}
	case "other-model":
		out.Resources = &api.Advised{GPUModel: s.GPUModels}
	case "less-cpu-memory":
		out.Resources = &api.Advised{CPUs: int(s.MilliCPU / 1000), CPUMemoryGB: max(int(s.MemMiB/1024), 1)}
	case "any-cluster":
		out.Resources = &api.Advised{ClusterID: new(int)}
	}
}
