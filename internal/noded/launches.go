package noded

import (
	"context"
	"errors"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/launch"
	"gbatch/internal/noded/launches"
)

// recorder has the controller record what srun starts in one rank.
type recorder struct {
	a  *Agent
	id job.RankID
	of string // the job's UUID
}

func (r recorder) Begin(ctx context.Context, b launch.NodeBegin) (uint32, error) {
	return r.say(ctx, api.LaunchRequest{Rank: r.id, UUID: r.of, Begin: &api.LaunchBegin{Key: b.Key, Name: b.Name, Tasks: b.Tasks, CPUs: b.CPUs, GPUs: b.GPUs, Ranks: b.Ranks}})
}

func (r recorder) End(ctx context.Context, e launch.NodeEnd) error {
	_, err := r.say(ctx, api.LaunchRequest{Rank: r.id, UUID: r.of, End: &api.LaunchEnd{Step: e.Step, Code: e.Code, Signal: e.Signal, Use: e.Use}})
	return err
}

func (r recorder) say(ctx context.Context, q api.LaunchRequest) (uint32, error) {
	out, err := r.a.controller.Launch(ctx, r.a.cfg.Name, &q)
	if e := (*api.Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case api.CodeConflict, api.CodeDenied, api.CodeNotFound, api.CodeBadRequest:
			return 0, launches.Refused{Text: e.Message}
		}
	}
	if err != nil {
		return 0, err
	}
	return out.Step, nil
}
