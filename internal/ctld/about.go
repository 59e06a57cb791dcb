package ctld

import (
	"context"
	"net"
	"runtime"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Version of the program, shown in status. Set by the build.
var Version = "dev"

// about tells of the controller itself.
type about struct {
	started   time.Time
	now       func() time.Time
	rules     *Rules
	loop      *loop
	streams   *Hub
	pin       string
	listeners func() []net.Listener
}

type statusInput struct{}

func (s *about) status(ctx context.Context, _ *statusInput) (*api.Status, error) {
	id := caller(ctx)
	out := api.Status{Version: Version, Started: s.started, You: id.user, Role: string(id.role), Jobs: countJobs(s.loop.View())}
	for _, p := range s.rules.Now().Projects {
		out.Projects = append(out.Projects, p.Name)
	}
	return &out, nil
}

func countJobs(v *state.View) map[job.State]int {
	out := map[job.State]int{}
	for j := range v.All() {
		out[j.Status()]++
	}
	return out
}

type siteInput struct{}

func (s *about) site(context.Context, *siteInput) (*api.Site, error) {
	out := api.Site{Pin: s.pin}
	for _, ln := range s.listeners() {
		if ln.Addr().Network() != "unix" {
			out.Address = site.JoinString(*s.rules.Now(), ln.Addr().String(), out.Pin)
		}
	}
	return &out, nil
}

type diagInput struct{}

// diag answers from what is counted anyway; it asks nothing of the loop, which
// may be what is slow.
func (s *about) diag(context.Context, *diagInput) (*api.Diagnosis, error) {
	v, load := s.loop.View(), s.loop.load()
	out := s.loop.metrics.Diagnose()
	out.Version, out.Started, out.Now = Version, s.started, s.now()
	out.Inbox, out.InboxSize, out.Streams = load.inbox, inboxSize, s.streams.count()
	out.DiskReserve, out.StoreBytes, out.Goroutines = s.loop.reserve, load.stored, runtime.NumGoroutine()
	if v.Plan != nil {
		out.Waiting, out.Running, out.Shapes = v.Plan.Stats.Waiting, v.Plan.Stats.Running, v.Plan.Stats.Classes
	}
	if load.freeKnown {
		out.DiskFree = load.free
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	out.HeapBytes = mem.HeapInuse
	return &out, nil
}
