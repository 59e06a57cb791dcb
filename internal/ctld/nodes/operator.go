package nodes

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/sched"
)

// Operator is what operators do with nodes.
type Operator struct {
	Loop   *loop.Loop
	Rights *access.Rights
}

type drainInput struct {
	Name string `path:"name"`
	Body api.DrainRequest
}

// Drain takes a node, or one GPU of it, out of scheduling.
func (s *Operator) Drain(ctx context.Context, in *drainInput) (*api.DrainResult, error) {
	q := in.Body
	switch {
	case q.Reason == "":
		return nil, api.Errorf(api.CodeBadRequest, "a drain needs a reason").WithHint("it is shown to everyone whose job waits for the node")
	case q.GPU != "" && (q.Reboot || q.EvictIn != 0):
		return nil, api.Errorf(api.CodeBadRequest, "only a whole node can be rebooted, or evicted later").WithHint("leave gpu out")
	case q.EvictIn < 0 || q.EvictIn > maxEvictIn || q.EvictIn > 0 && !q.Evict:
		return nil, api.Errorf(api.CodeBadRequest, "evictIn must be 0 to %d seconds, and needs evict", int64(maxEvictIn))
	}
	ev := control.Drain{Node: in.Name, GPU: q.GPU, Reason: q.Reason, By: access.Caller(ctx).User, Evict: q.Evict, Reboot: q.Reboot}
	if q.EvictIn > 0 {
		ev.EvictAt = sched.Time(s.Loop.Now().UnixMilli()) + sched.Time(q.EvictIn)*sched.Second
	}
	answer, err := loop.Do(ctx, s.Loop, ev)
	if err != nil {
		return nil, err
	}
	out := api.DrainResult{Evicted: []api.EvictedJob{}, Jobs: answer.Jobs}
	for _, j := range answer.Evicted {
		out.Evicted = append(out.Evicted, api.EvictedJob(j))
	}
	return &out, nil
}

// maxEvictIn is the longest time that jobs have to end by themselves, in seconds: a year.
const maxEvictIn = 366 * 24 * 3600

// Resume puts it back.
func (s *Operator) Resume(ctx context.Context, in *drainInput) error {
	q := in.Body
	if q.Evict || q.EvictIn != 0 || q.Reboot && q.GPU != "" {
		return api.Errorf(api.CodeBadRequest, "a node is not put back and evicted at once, nor one GPU of it rebooted").WithHint("leave evict, evictIn and reboot out")
	}
	return loop.DoToEnd(ctx, s.Loop, control.Drain{Node: in.Name, GPU: q.GPU, By: access.Caller(ctx).User, Reboot: q.Reboot})
}

type nodeName struct {
	Name string `path:"name"`
}

type forgetInput struct {
	Name       string `path:"name"`
	GiveUpJobs bool   `query:"giveUpJobs" doc:"and what runs there without contact: the machine is known to be off"`
}
