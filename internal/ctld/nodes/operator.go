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
	out := api.DrainResult{Evicted: []api.EvictedJob{}}
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
	return loop.Order(ctx, s.Loop, control.Drain{Node: in.Name, GPU: q.GPU, By: access.Caller(ctx).User, Reboot: q.Reboot})
}

type nodeName struct {
	Name string `path:"name"`
}

type forgetInput struct {
	Name       string `path:"name"`
	GiveUpJobs bool   `query:"giveUpJobs" doc:"and what runs there without contact: the machine is known to be off"`
}

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
	if err := loop.Order(ctx, s.Loop, control.Reserve{Window: w}); err != nil {
		return nil, err
	}
	for _, made := range s.Loop.View().Windows {
		if made.Name == r.Name {
			w = made
		}
	}
	out := reservationToAPI(w)
	return &out, nil
}

type reservationName struct {
	Name string `path:"name"`
}

// Unreserve removes one.
func (s *Operator) Unreserve(ctx context.Context, in *reservationName) error {
	return loop.Order(ctx, s.Loop, control.Unreserve{Name: in.Name})
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
	return &out, nil
}

func reservationToAPI(w sched.Window) api.Reservation {
	return api.Reservation{
		Name: w.Name, UUID: w.ID, Start: wire.Time(w.Start), End: wire.Time(w.End), Nodes: w.Nodes, GPUs: w.GPUs, GPUModels: w.Match.GPUModels, Cluster: w.Match.Cluster,
		Projects: w.Projects, Users: w.Users, Maintenance: w.Maintenance, Reason: w.Reason,
	}
}
