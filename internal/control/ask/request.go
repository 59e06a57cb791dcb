package ask

import (
	"cmp"
	"slices"

	"gbatch/internal/control/need"
	"gbatch/internal/control/partition"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Place is what a document asks of nodes, and the partitions where it may be had.
// There may be others than those of the rules: known are all that nodes are in.
func (r Rules) Place(who Who, spec *job.Spec, known []string) (*sched.Shape, partition.Chosen, *state.Refusal) {
	shape := r.shape(who.Project, spec)
	var names []string
	if spec.Gbatch != nil {
		names = spec.Gbatch.Partitions
	}
	chosen, refusal := r.Partitions.Choose(partition.Asked{
		Names: names, Project: who.Project, QOS: cmp.Or(QOS(spec), r.DefaultQOS), Operator: who.Operator, Closed: who.Closed,
		Limit: sched.Time(spec.Request.Scheduling.MaxDuration) * 1000, Usual: r.DefaultRun, Shape: shape, Known: known,
	})
	shape.Partitions = chosen.Names
	return shape, chosen, refusal
}

// shape is what placement looks at.
func (r Rules) shape(project string, spec *job.Spec) *sched.Shape {
	p := r.Projects[project]
	res := spec.Request.Resources
	g := spec.Gbatch
	if g == nil {
		g = &job.Gbatch{}
	}
	shape := &sched.Shape{
		Nodes: max(g.Nodes, 1), PerNode: g.RanksPerNode,
		MilliCPU: int64(res.CPUs) * 1000, MemMiB: (spec.MemoryBytes() + 1<<20 - 1) >> 20,
		AllGPUs: res.GPUs < 0, Exclusive: g.Exclusive || g.Privileged, AllMem: g.AllMemory,
		Cluster: res.ClusterID, Node: res.SlaveName,
		GPUModels: res.GPUModel, GPUMemMiB: int64(res.GPUMemoryGB) << 10,
		DiskMiB: int64(g.DiskGB) << 10, MinCUDA: res.MinCudaVersion * 100, MinComputeCap: int(g.MinComputeCapability*10 + 0.5),
		Features: slices.Concat(res.Features, need.Of(spec)),

		AnyFeatures: g.AnyFeatures, NodeNames: g.NodeNames, ExcludeNodes: g.ExcludeNodes, Storage: storage(spec), Licenses: licenses(g.Licenses),
	}
	if len(p.Clusters) == 1 && shape.Cluster == 0 {
		shape.Cluster = p.Clusters[0]
	}
	if res.GPUs > 0 {
		shape.MilliGPU = milliGPU(res.GPUs)
	}
	for i := range g.OtherGroups {
		shape.Join(group(spec, &g.OtherGroups[i]))
	}
	if shape.OneOnANode() { // by the site's tables, as the document itself would be refused
		shape.PerNode = 0
	}
	return shape
}

func milliGPU(gpus float64) int64 { return int64(gpus*1000 + 0.5) }

// group is what the ranks of one of a job's groups take.
func group(spec *job.Spec, g *job.Group) sched.Group {
	of := spec.OfGroup(g)
	return sched.Group{
		Nodes: g.Nodes, MilliGPU: milliGPU(g.GPUs), MilliCPU: int64(g.CPUs) * 1000, MemMiB: (of.MemoryBytes() + 1<<20 - 1) >> 20,
		GPUModels: g.GPUModel, GPUMemMiB: int64(g.GPUMemoryGB) << 10, MinComputeCap: int(g.MinComputeCapability*10 + 0.5),
	}
}

// Request draws out of a document what the scheduler needs, with the site's
// defaults where it is silent; limit is that of where it may run, 0 for none.
func (r Rules) Request(spec *job.Spec, shape *sched.Shape, limit sched.Time) state.Request {
	sc := spec.Request.Scheduling
	g := spec.Gbatch
	if g == nil {
		g = &job.Gbatch{}
	}
	q := state.Request{
		Shape: shape, Limit: sched.Time(sc.MaxDuration) * 1000, MinRun: sched.Time(sc.MinDuration) * 1000, LimitMin: sched.Time(g.LimitMin) * 1000,
		Priority: g.Priority, NotBefore: sched.Time(sc.NotBefore), NotAfter: sched.Time(sc.NotAfter),
		MaxQueued: sched.Time(g.MaxQueued) * 1000, Interactive: sc.Interactive, Restartable: sc.Restartable,
		LimitScope: g.LimitScope, Retry: g.Retry, Reservations: sc.ReservationIDs, HaltSignal: spec.HaltSignal(), HaltGrace: sched.Time(g.HaltGrace) * 1000,
		HaltUnwarned: sc.AllowHaltWithoutSignal && g.HaltSignal == "",
		StopSignal:   g.StopSignal, StopGrace: sched.Time(g.StopGrace) * 1000,
		StartOrder: g.StartOrder, StopWhen: g.StopWhen, StopRanks: g.StopRanks,
	}
	if g.Launch != nil && shape.Nodes > 1 {
		q.StopWhen = job.MasterDone
	}
	if i := g.IdleGPU; i != nil && spec.AsksGPUs() {
		q.IdleMin, q.IdleWindow = i.MinUtilization, sched.Time(i.Window)*1000
	}
	q.Told, q.Warn = spec.Notifies(), spec.Warnings()
	if r.MaxGrace > 0 {
		q.StopGrace = min(q.StopGrace, r.MaxGrace)
	}
	if q.Limit == 0 {
		q.Limit = cmp.Or(limit, r.DefaultRun)
	}
	if q.LimitMin >= q.Limit {
		q.LimitMin = 0
	}
	if q.MinRun == 0 {
		q.MinRun = min(r.DefaultMin, cmp.Or(q.LimitMin, q.Limit))
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
