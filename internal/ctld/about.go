package ctld

import (
	"context"
	"maps"
	"net"
	"runtime"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/rules"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/web"
)

// Version of the program, shown in status. Set by the build.
var Version = "dev"

// about tells of the controller itself.
type about struct {
	started   time.Time
	now       func() time.Time
	rules     *rules.Rules
	rights    *access.Rights
	loop      *loop.Loop
	meters    *meter.Meters
	streams   *streams.Hub
	pin       string
	listeners []net.Listener
}

type statusInput struct{}

func (s *about) status(ctx context.Context, _ *statusInput) (*api.Status, error) {
	id := access.Caller(ctx)
	out := api.Status{Version: Version, Started: s.started, You: id.User, Role: string(id.Role), Jobs: s.loop.View().States()}
	for _, p := range s.rules.Now().Projects {
		if s.rights.SeesProject(id, p.Name) {
			out.Projects = append(out.Projects, p.Name)
		}
	}
	return &out, nil
}

type siteInput struct{}

func (s *about) site(context.Context, *siteInput) (*api.Site, error) {
	c := s.rules.Now()
	out := api.Site{
		Pin: s.pin, DefaultDurationS: int64(c.Limits.DefaultDuration), MaxDurationS: int64(c.Limits.MaxDuration),
		GraceS: int64(c.Limits.Grace), DefaultQOS: c.Policy.DefaultQOS, JobsDomain: c.Web.JobsDomain,
	}
	for _, name := range slices.Sorted(maps.Keys(c.Policy.QOS)) {
		out.QOS = append(out.QOS, api.SiteQOS{Name: name, Priority: c.Policy.QOS[name].Priority, Preempts: c.Policy.QOS[name].Preempts, RunsAlone: c.Policy.QOS[name].RunsAlone})
	}
	for _, ln := range s.listeners {
		if ln.Addr().Network() != "unix" {
			out.Address = site.Address(*c, ln.Addr().String(), out.Pin)
			out.Page = site.PageAddress(*c, ln.Addr().String()) + web.Base
		}
	}
	return &out, nil
}

type diagInput struct{}

// diag answers from what is counted anyway; it asks nothing of the loop, which
// may be what is slow.
func (s *about) diag(context.Context, *diagInput) (*api.Diagnosis, error) {
	v, load := s.loop.View(), s.loop.Load()
	out := s.meters.Diagnose()
	out.Version, out.Started, out.Now = Version, s.started, s.now()
	out.Inbox, out.InboxSize, out.Streams = load.Inbox, load.InboxSize, s.streams.Count()
	out.DiskReserve, out.StoreBytes, out.Goroutines = load.Reserve, load.Stored, runtime.NumGoroutine()
	if v.Plan != nil {
		out.Waiting, out.Running, out.Shapes = v.Plan.Stats.Waiting, v.Plan.Stats.Running, v.Plan.Stats.Classes
	}
	if load.FreeKnown {
		out.DiskFree = load.Free
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	out.HeapBytes = mem.HeapInuse
	return &out, nil
}
