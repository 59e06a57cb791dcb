package nodes

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
	"gbatch/sched"
)

type reservationInput struct{ Body api.Reservation }

// Reserve makes an advance reservation.
func (s *Operator) Reserve(ctx context.Context, in *reservationInput) (*api.Reservation, error) {
	r := in.Body
	if r.UUID != "" {
		return nil, api.Errorf(api.CodeBadRequest, "a reservation is given its UUID when it is made").WithHint("leave uuid out")
	}
	w := sched.Window{
		Name: r.Name, ID: uuid.NewString(), Start: sched.Time(r.Start.UnixMilli()), End: sched.Time(r.End.UnixMilli()), Nodes: r.Nodes, Count: r.Count,
		GPUs: r.GPUs, GPUsPerNode: r.GPUsPerNode,
		Match:    sched.Shape{GPUModels: r.GPUModels, Cluster: r.Cluster},
		Projects: r.Projects, Users: r.Users, Maintenance: r.Maintenance, Reason: r.Reason,
	}
	order := control.Reserve{Window: w, Partition: r.Partition}
	if e := r.Every; e != nil {
		zone, err := loop.Zone(e.Zone)
		if err != nil || e.Zone == "Local" {
			return nil, api.Errorf(api.CodeBadRequest, "there is no time zone %q", e.Zone).WithHint("name it as Europe/Brussels or UTC")
		}
		order.Zone, order.Every = zone, &state.Every{Cron: e.Schedule, Zone: e.Zone}
		if !e.Until.IsZero() {
			order.Every.Until = sched.Time(e.Until.UnixMilli())
		}
	}
	if err := loop.DoToEnd(ctx, s.Loop, order); err != nil {
		return nil, err
	}
	made := state.Window{Window: w}
	for _, w := range s.Loop.View().Windows {
		if w.Name == r.Name {
			made = w
		}
	}
	out := reservationToAPI(made)
	return &out, nil
}

type unreserveInput struct {
	Name string `path:"name"`
	Once bool   `query:"once" doc:"of one that comes again only the time that is, or comes next"`
}

// Unreserve removes one.
func (s *Operator) Unreserve(ctx context.Context, in *unreserveInput) error {
	return loop.DoToEnd(ctx, s.Loop, control.Unreserve{Name: in.Name, Once: in.Once, Zone: loop.ZoneOf})
}

type reservationsInput struct{}

// Reservations lists them. Each keeps nodes from everyone, so all are told of it;
// whom it is for and why is told to operators and to those it is for.
func (s *Operator) Reservations(ctx context.Context, _ *reservationsInput) (*api.ReservationList, error) {
	id := access.Caller(ctx)
	out := api.ReservationList{Reservations: []api.Reservation{}}
	for _, w := range s.Loop.View().Windows {
		r := reservationToAPI(w)
		if !id.Operator() {
			r.Projects = slices.DeleteFunc(slices.Clone(w.Projects), func(p string) bool { return !s.Rights.SeesProject(id, p) })
			r.Users = slices.DeleteFunc(slices.Clone(w.Users), func(u string) bool { return u != id.User })
			r.Others = len(r.Projects)+len(r.Users) < len(w.Projects)+len(w.Users)
		}
		if r.Others && len(r.Projects)+len(r.Users) == 0 {
			r.UUID, r.Reason = "", ""
		}
		out.Reservations = append(out.Reservations, r)
	}
	slices.SortStableFunc(out.Reservations, func(a, b api.Reservation) int { return a.Start.Compare(b.Start) })
	return &out, nil
}

func reservationToAPI(w state.Window) api.Reservation {
	out := api.Reservation{
		Name: w.Name, UUID: w.ID, Start: wire.Time(w.Start), End: wire.Time(w.End), Nodes: w.Nodes, GPUs: w.GPUs, GPUModels: w.Match.GPUModels, Cluster: w.Match.Cluster,
		Projects: w.Projects, Users: w.Users, Maintenance: w.Maintenance, Reason: w.Reason,
	}
	if e := w.Every; e != nil {
		out.Every = &api.Recurrence{Schedule: e.Cron, Zone: e.Zone, Until: wire.Time(e.Until)}
		for _, span := range w.More[:min(len(w.More), 3)] {
			out.Every.Upcoming = append(out.Every.Upcoming, api.Span{Start: wire.Time(span.Start), End: wire.Time(span.End)})
		}
	}
	return out
}
