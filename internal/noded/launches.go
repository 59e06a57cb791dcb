package noded

import (
	"context"
	"errors"
	"net/http"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/launch"
	"gbatch/internal/noded/launches"
	"gbatch/internal/noded/rank"
)

// recorder has the controller record what srun starts in one rank.
type recorder struct {
	a  *Agent
	id job.RankID
	of string // the job's UUID
}

func (r recorder) Begin(ctx context.Context, b launch.NodeBegin) (uint32, error) {
	return r.say(ctx, api.LaunchRequest{Rank: r.id, UUID: r.of, Begin: &api.LaunchBegin{Key: b.Key, Name: b.Name, Image: b.Image, Tasks: b.Tasks, CPUs: b.CPUs, GPUs: b.GPUs, Ranks: b.Ranks}})
}

func (r recorder) End(ctx context.Context, e launch.NodeEnd) error {
	_, err := r.say(ctx, api.LaunchRequest{Rank: r.id, UUID: r.of, End: &api.LaunchEnd{Step: e.Step, Code: e.Code, Signal: e.Signal, OOM: e.OOM, Use: e.Use}})
	return err
}

func (r recorder) say(ctx context.Context, q api.LaunchRequest) (uint32, error) {
	out, err := askStep(ctx, r.a, q)
	if err != nil {
		return 0, err
	}
	return out.Step, nil
}

// askStep asks the controller about a step.
func askStep(ctx context.Context, a *Agent, q api.LaunchRequest) (*api.LaunchResponse, error) {
	out, err := a.controller.Launch(ctx, a.cfg.Name, &q)
	if e := (*api.Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case api.CodeConflict, api.CodeDenied, api.CodeNotFound, api.CodeBadRequest:
			return nil, launches.Refused{Text: e.Message}
		}
	}
	return out, err
}

// forLaunches is what ranks of batch scripts reach the controller by.
func forLaunches(a *Agent, n *rank.Node) {
	n.Launches = func(id job.RankID, of string) launches.Recorder { return recorder{a, id, of} }
	n.Login = func(ctx context.Context, id job.RankID, of string) (*api.Credential, error) {
		out, err := askStep(ctx, a, api.LaunchRequest{Rank: id, UUID: of, Login: true})
		if err != nil {
			return nil, err
		}
		return out.Registry, nil
	}
	n.Within = func(id job.RankID, of string) (http.Handler, error) {
		return a.controller.Within(a.cfg.Name+" "+id.String()+" "+of, launches.Unreached)
	}
}
