package ctld

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/sched"
)

// What operators do. Each is logged with who did it.

func (s *Server) asOperator(ctx context.Context, what string, ev control.Event, attrs ...any) error {
	id := caller(ctx)
	if !id.admin() {
		return &api.Error{Status: 403, Code: api.CodeDenied, Message: "only an operator may do this", Hint: "operators are root and those that the controller's configuration names"}
	}
	answer, err := s.loop.do(ctx, ev)
	if err != nil {
		return s.fail(err)
	}
	if r, ok := answer.(*control.Refusal); ok {
		return refused(r)
	}
	s.log.Info(what, append([]any{slog.String("by", id.user)}, attrs...)...)
	return nil
}

type drainInput struct {
	Name string `path:"name"`
	Body api.DrainRequest
}

type nothing struct{}

func (s *Server) drain(ctx context.Context, in *drainInput) (*nothing, error) {
	if in.Body.Reason == "" {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: "a drain needs a reason", Hint: "it is shown to everyone whose job waits for the node"}
	}
	ev := control.Drain{Node: in.Name, GPU: in.Body.GPU, Reason: in.Body.Reason, By: caller(ctx).user}
	return nil, s.asOperator(ctx, "drained", ev, "node", in.Name, "gpu", in.Body.GPU, "reason", in.Body.Reason)
}

func (s *Server) resume(ctx context.Context, in *drainInput) (*nothing, error) {
	return nil, s.asOperator(ctx, "resumed", control.Drain{Node: in.Name, GPU: in.Body.GPU}, "node", in.Name, "gpu", in.Body.GPU)
}

type nodeName struct {
	Name string `path:"name"`
}

func (s *Server) forget(ctx context.Context, in *nodeName) (*nothing, error) {
	return nil, s.asOperator(ctx, "forgotten", control.Forget{Node: in.Name}, "node", in.Name)
}

type reservationInput struct{ Body api.Reservation }

func (s *Server) reserve(ctx context.Context, in *reservationInput) (*body[api.Reservation], error) {
	r := in.Body
	if r.UUID != "" {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: "a reservation is given its UUID when it is made", Hint: "leave uuid out"}
	}
	w := sched.Window{
		Name: r.Name, ID: uuid.NewString(), Start: sched.Time(r.Start.UnixMilli()), End: sched.Time(r.End.UnixMilli()), Nodes: r.Nodes, Count: r.Count,
		GPUs: r.GPUs, GPUsPerNode: r.GPUsPerNode,
		Match:    sched.Shape{GPUModels: r.GPUModels, Cluster: r.Cluster},
		Projects: r.Projects, Users: r.Users, Maintenance: r.Maintenance, Reason: r.Reason,
	}
	if err := s.asOperator(ctx, "reserved", control.Reserve{Window: w}, "reservation", r.Name); err != nil {
		return nil, err
	}
	for _, made := range s.loop.view.Load().Windows {
		if made.Name == r.Name {
			w = made
		}
	}
	return &body[api.Reservation]{reservationToAPI(w)}, nil
}

type reservationName struct {
	Name string `path:"name"`
}

func (s *Server) unreserve(ctx context.Context, in *reservationName) (*nothing, error) {
	return nil, s.asOperator(ctx, "unreserved", control.Unreserve{Name: in.Name}, "reservation", in.Name)
}

type reservationsInput struct{}

func (s *Server) reservations(context.Context, *reservationsInput) (*body[api.ReservationList], error) {
	out := api.ReservationList{Reservations: []api.Reservation{}}
	for _, w := range s.loop.view.Load().Windows {
		out.Reservations = append(out.Reservations, reservationToAPI(w))
	}
	return &body[api.ReservationList]{out}, nil
}

func reservationToAPI(w sched.Window) api.Reservation {
	return api.Reservation{
		Name: w.Name, UUID: w.ID, Start: toTime(w.Start), End: toTime(w.End), Nodes: w.Nodes, GPUs: w.GPUs, GPUModels: w.Match.GPUModels, Cluster: w.Match.Cluster,
		Projects: w.Projects, Users: w.Users, Maintenance: w.Maintenance, Reason: w.Reason,
	}
}

// ReloadOn reads the configuration again at each signal, until ctx is done. An
// error leaves the old rules in force.
func (s *Server) ReloadOn(ctx context.Context, sig <-chan os.Signal, read func() (Config, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-sig:
		}
		cfg, err := read()
		if err == nil {
			err = s.Reload(ctx, cfg)
		}
		if err != nil {
			s.log.Error("configuration not reloaded: the old rules stay in force", "err", err)
		}
	}
}

// Reload takes a new configuration's rules: projects, operators, limits and
// policy, all or none. What was fixed at the start is an error if it differs.
func (s *Server) Reload(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	old := s.cfg()
	if cfg.Dir != old.Dir || cfg.socket() != old.socket() || cfg.Listen != old.Listen {
		return fmt.Errorf("dir, socket and listen cannot change while gctld runs: restart it")
	}
	cc, err := cfg.control()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	answer, err := s.loop.do(ctx, control.Reconfigure{Config: cc})
	if err != nil {
		return err
	}
	if r, ok := answer.(*control.Refusal); ok {
		return r
	}
	s.conf.Store(&cfg)
	s.log.Info("rules reloaded", "projects", len(cfg.Projects))
	return nil
}
