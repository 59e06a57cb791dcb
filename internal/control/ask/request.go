package ask

import (
	"slices"

	"gbatch/internal/control/need"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Request draws out of a document what the scheduler needs, with the site's
// and the project's defaults where it is silent.
func (r Rules) Request(project string, spec *job.Spec) state.Request {
	p := r.Projects[project]
	res, sc := spec.Request.Resources, spec.Request.Scheduling
	g := spec.Gbatch
	if g == nil {
		g = &job.Gbatch{}
	}
	shape := &sched.Shape{
		Nodes:    max(g.Nodes, 1),
		MilliCPU: int64(res.CPUs) * 1000, MemMiB: (spec.MemoryBytes() + 1<<20 - 1) >> 20,
		AllGPUs: res.GPUs < 0, Exclusive: g.Exclusive || g.Privileged, AllMem: g.AllMemory,
		Cluster: res.ClusterID, Node: res.SlaveName,
		GPUModels: res.GPUModel, GPUMemMiB: int64(res.GPUMemoryGB) << 10,
		DiskMiB: int64(g.DiskGB) << 10, MinCUDA: res.MinCudaVersion * 100, MinComputeCap: int(g.MinComputeCapability*10 + 0.5),
		Features: slices.Concat(res.Features, need.Of(spec)),

		AnyFeatures: g.AnyFeatures, NodeNames: g.NodeNames, ExcludeNodes: g.ExcludeNodes,
	}
	if len(p.Clusters) == 1 && shape.Cluster == 0 {
		shape.Cluster = p.Clusters[0]
	}
	if res.GPUs > 0 {
		shape.MilliGPU = int64(res.GPUs*1000 + 0.5)
	}
	q := state.Request{
		Shape: shape, Limit: sched.Time(sc.MaxDuration) * 1000, MinRun: sched.Time(sc.MinDuration) * 1000,
		Priority: g.Priority, NotBefore: sched.Time(sc.NotBefore), NotAfter: sched.Time(sc.NotAfter),
		MaxQueued: sched.Time(g.MaxQueued) * 1000, Interactive: sc.Interactive, Restartable: sc.Restartable,
		LimitScope: g.LimitScope, Retry: g.Retry, Reservations: sc.ReservationIDs, HaltSignal: spec.HaltSignal(), HaltGrace: sched.Time(g.HaltGrace) * 1000,
		HaltUnwarned: sc.AllowHaltWithoutSignal && g.HaltSignal == "",
		StopSignal:   g.StopSignal, StopGrace: sched.Time(g.StopGrace) * 1000,
		StartOrder: g.StartOrder, StopWhen: g.StopWhen,
	}
	if g.Launch != nil && shape.Nodes > 1 {
		q.StopWhen = job.MasterDone
	}
	if i := g.IdleGPU; i != nil && (shape.MilliGPU > 0 || shape.AllGPUs) {
		q.IdleMin, q.IdleWindow = i.MinUtilization, sched.Time(i.Window)*1000
	}
	q.Mails = spec.Request.Extra.Mails()
	if r.MaxGrace > 0 {
		q.StopGrace = min(q.StopGrace, r.MaxGrace)
	}
	if q.Limit == 0 {
		q.Limit = r.DefaultRun
	}
	if q.MinRun == 0 {
		q.MinRun = min(r.DefaultMin, q.Limit)
	}
	if b := sc.MaxSimultaneousJobs; b != nil {
		q.Bucket, q.BucketMax = b.Name, b.Max
	}
	return q
}

// QOS is the one that a document names, empty if none.
func QOS(s *job.Spec) string {
	if s.Gbatch == nil {
		return ""
	}
	return s.Gbatch.QOS
}
