package nodes

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/control/launches"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

type launchInput struct {
	Name string `path:"name"`
	Body api.LaunchRequest
}

// maxLaunchRanks bounds the ranks that a step names.
const maxLaunchRanks = 10_000

// Launch records what srun starts in a job, and how it ended.
func (s *Exchange) Launch(ctx context.Context, in *launchInput) (*api.LaunchResponse, error) {
	if id := access.Caller(ctx); !id.MayNode(in.Name) {
		return nil, api.Errorf(api.CodeDenied, "%s speaks for itself, not for node %s", id.User, in.Name).WithHint("see name in the node's gnoded.yaml")
	}
	q := &in.Body
	switch {
	case q.Login && q.Begin == nil && q.End == nil:
		return s.login(in.Name, q)
	case q.Login:
	case q.Begin != nil && q.End == nil:
		b := q.Begin
		cut(&b.Name, maxWord)
		cut(&b.Key, maxWord)
		cut(&b.Image, maxWord)
		if len(b.Ranks) > maxLaunchRanks || b.Tasks < 0 || b.Tasks > maxCPUs || b.CPUs < 0 || b.CPUs > maxCPUs || b.GPUs < 0 || b.GPUs > maxCPUs {
			return nil, api.Errorf(api.CodeBadRequest, "a step has more than a job can")
		}
		n, err := loop.Do(ctx, s.Loop, control.Launch{Node: in.Name, Rank: q.Rank, UUID: q.UUID, Begin: &state.Launch{Key: b.Key, Name: b.Name, Image: b.Image, Tasks: b.Tasks, CPUs: b.CPUs, GPUs: b.GPUs, Ranks: b.Ranks}})
		return &api.LaunchResponse{Step: n}, err
	case q.End != nil && q.Begin == nil:
		_, err := loop.Do(ctx, s.Loop, control.Launch{Node: in.Name, Rank: q.Rank, UUID: q.UUID, End: launches.End{Number: q.End.Step, Code: q.End.Code & 0xff, Signal: q.End.Signal & 0x7f, OOM: q.End.OOM, Use: q.End.Use.Sane()}})
		return &api.LaunchResponse{Step: q.End.Step}, err
	}
	return nil, api.Errorf(api.CodeBadRequest, "want one of begin, end and login")
}

// login is that of a job which runs on the node, for the registry of its image.
func (s *Exchange) login(on string, q *api.LaunchRequest) (*api.LaunchResponse, error) {
	j := s.Loop.View().Job(q.Rank.Job)
	if j != nil && !node.SameJob(j.Identity(), q.UUID) {
		j = nil
	}
	if r := launches.Inside(j, on, q.Rank); r != nil {
		return nil, api.Errorf(api.CodeDenied, "%s", r.Message)
	}
	out, owner := &api.LaunchResponse{}, j
	if j.Parent > 0 {
		owner = s.Loop.View().Job(j.Parent)
	}
	if owner == nil || !owner.Sealed {
		return out, nil
	}
	kept, err := s.Jobs.Unseal(j.Document())
	if err == nil && kept.Credential != (api.Credential{}) {
		out.Registry = &kept.Credential
	}
	return out, err
}
