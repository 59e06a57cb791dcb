package usage

import (
	"cmp"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Used works out what jobs used.
type Used struct {
	View    func() *state.View
	Samples *samples.Samples
	Now     func() time.Time
}

// Of is what a job held, and what its last attempt made of it; of one that
// runs as its nodes said last. An array uses nothing: its tasks do.
func (s *Used) Of(j *state.Job) *api.Used {
	if j.Tasks != nil || j.Cron != nil {
		return nil
	}
	held := s.View().Held(j, sched.Time(s.Now().UnixMilli()))
	u := &api.Used{
		GPUSeconds: float64(held.MilliGPU) / 1e6, CPUSeconds: float64(held.MilliCPU) / 1e6,
		MemGiBSeconds: float64(held.MemMiB) / 1024 / 1000, BilledHours: wire.BilledHours(held.Billed),
	}
	at := j.Last()
	if at == nil || j.State.Pending() {
		return u
	}
	if j.Started > 0 {
		end := j.Ended + sched.Second/2 // the nearest second, as begin and end are when they were heard of
		if j.Ended == 0 {
			end = sched.Time(s.Now().UnixMilli())
		}
		u.ElapsedS = int64(max(end-j.Started, 0) / sched.Second)
	}
	for i, r := range at.Ranks {
		u.Cores += int(r.Alloc.MilliCPU / 1000)
		u.MemBytes = max(u.MemBytes, r.Alloc.MemMiB<<20)
		use := s.Samples.Use(r.Alloc.Node, j.RankID(i), j.Identity())
		if r.Exit != nil {
			use = &node.LiveUse{CPUSeconds: r.Exit.CPUSeconds, PeakMem: r.Exit.PeakMem, GPU: r.Exit.GPU}
		}
		if use == nil {
			continue
		}
		u.NodesKnown++
		u.CPUTimeS += use.CPUSeconds
		u.PeakMem = max(u.PeakMem, use.PeakMem)
		u.GPU = joinGPUs(u.GPU, use.GPU)
	}
	return u
}

// joinGPUs is what the GPUs of several ranks did together.
func joinGPUs(a, b *node.GPUUse) *node.GPUUse {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := *a
	if n := a.Samples + b.Samples; n > 0 {
		out.Utilization = (a.Utilization*float64(a.Samples) + b.Utilization*float64(b.Samples)) / float64(n)
		out.Samples = n
	}
	out.MaxUtilization = max(a.MaxUtilization, b.MaxUtilization)
	if b.MaxMem > a.MaxMem {
		out.MaxMem, out.Mem = b.MaxMem, b.Mem
	}
	out.EnergyJ += b.EnergyJ
	out.Simulated = a.Simulated || b.Simulated
	return &out
}
