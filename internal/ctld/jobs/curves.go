package jobs

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/curves"
	"gbatch/internal/state"
	"gbatch/sched"
)

type curvesInput struct {
	ID   string `path:"id"`
	Rank int    `query:"rank" minimum:"0"`
	Try  uint32 `query:"attempt" doc:"0: the last"`
}

// CurvesOf is what a rank has used over its time.
func (s *Queries) CurvesOf(ctx context.Context, in *curvesInput) (*api.Curves, error) {
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if !s.Rights.MayTouch(access.Caller(ctx), j.Owner) {
		return nil, api.Errorf(api.CodeDenied, "job %d belongs to project %s", j.Number, j.Owner.Project)
	}
	at, err := s.Jobs.Attempt(j, in.Try)
	switch {
	case err != nil:
		return nil, err
	case j.Tasks != nil:
		return nil, api.Errorf(api.CodeConflict, "job %s is an array, which uses nothing itself: ask for one of its tasks", j.ID())
	case at == nil:
		return nil, api.Errorf(api.CodeConflict, "job %s is %s and has had no such try: nothing was used", j.ID(), j.State)
	case in.Rank >= len(at.Ranks):
		return nil, api.Errorf(api.CodeNotFound, "job %d has ranks 0 to %d", j.Number, len(at.Ranks)-1)
	}
	out := &api.Curves{Attempt: at.Attempt, Rank: in.Rank, Granted: s.granted(&at.Ranks[in.Rank].Alloc)}
	c := s.Curves.Of(curves.Key{User: j.Owner.User, UUID: j.Identity(), Attempt: at.Attempt, Rank: uint32(in.Rank)})
	if c == nil {
		return out, nil
	}
	out.Begin, out.StepS, out.At = &c.Begin, int64(c.Step.Seconds()), c.At
	v := c.Values
	out.GPU, out.GPUMem, out.Mem = v[curves.GPU], v[curves.GPUMem], v[curves.Mem]
	out.Received, out.Sent, out.Power = v[curves.Received], v[curves.Sent], v[curves.Power]
	for _, milli := range v[curves.CPU] {
		if milli != nil {
			*milli /= 1000
		}
		out.CPU = append(out.CPU, milli)
	}
	return out, nil
}

// granted is what a rank may use.
func (s *Queries) granted(a *sched.Allocation) api.Granted {
	out := api.Granted{GPUs: float64(a.MilliGPU()) / 1000, CPUs: float64(a.MilliCPU) / 1000, MemBytes: a.MemMiB << 20}
	n := s.Loop.View().Node(a.Node)
	for _, g := range a.GPUs {
		out.GPUMemBytes += memOf(n, g.UUID) * g.Milli / 1000
	}
	return out
}

// memOf is the memory of a node's GPU; 0: it is not known any more.
func memOf(n *state.Node, uuid string) int64 {
	if n != nil {
		for _, g := range n.Inventory.GPUs {
			if g.UUID == uuid {
				return g.MemBytes
			}
		}
	}
	return 0
}
