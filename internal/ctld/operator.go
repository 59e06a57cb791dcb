package ctld

import (
	"context"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/state"
	"gbatch/sched"
)

// operate has an event applied for an operator, with records to go with it. The
// audit log says who did it.
func operate[A any](ctx context.Context, s *Server, ev control.Event[A], records ...state.Record) error {
	if _, err := settle(ctx, s.loop, ev, request{records: records, note: noteOf(ctx)}); err != nil {
		return s.fail(err)
	}
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
	return nil, operate(ctx, s, ev)
}

func (s *Server) resume(ctx context.Context, in *drainInput) (*nothing, error) {
	return nil, operate(ctx, s, control.Drain{Node: in.Name, GPU: in.Body.GPU})
}

type nodeName struct {
	Name string `path:"name"`
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
	if err := operate(ctx, s, control.Reserve{Window: w}); err != nil {
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
	return nil, operate(ctx, s, control.Unreserve{Name: in.Name})
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
