// Package picture draws jobs and nodes as the scheduler sees them. It is pure.
package picture

import (
	"maps"
	"slices"

	"gbatch/internal/control/depend"
	"gbatch/internal/control/need"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Waiting is a job of the table as the scheduler sees it.
func Waiting(j *state.Job) sched.Job {
	s := Job(j.Number, j.Owner, j.Request, j.Submitted)
	if j.Expected > 0 {
		s.Predicted = min(j.Expected, s.Limit)
	}
	return s
}

// Queued is a job in the scheduler's queue. The parent is that of a task, else nil.
func Queued(j, parent *state.Job) sched.Job {
	s := Waiting(j)
	if parent != nil {
		s.NotBefore = max(s.NotBefore, depend.Since(parent.Waits))
	}
	s.NotBefore = max(s.NotBefore, depend.Since(j.Waits))
	if j.Restart != nil {
		s.Interactive = false // nobody waits at a terminal for it any more
	}
	if j.Tries > 0 || j.Restart != nil || parent != nil && parent.First > 0 {
		s.MaxQueued, s.NotAfter = 0, 0 // it, or its array, has started in time once
	}
	if j.Retried != nil {
		s.NotBefore = max(s.NotBefore, j.Retried.Until)
	}
	return s
}

// Job is a job of that number as the scheduler sees it.
func Job(n job.Number, o *state.Owner, r *state.Request, submitted sched.Time) sched.Job {
	return sched.Job{
		ID: sched.JobID(n), Project: o.Project, User: o.User, QOS: o.QOS, Shape: r.Shape,
		Submitted: submitted, Limit: r.Limit, LimitMin: r.LimitMin, MinRun: r.MinRun, Priority: r.Priority,
		NotBefore: r.NotBefore, NotAfter: r.NotAfter, MaxQueued: r.MaxQueued, Interactive: r.Interactive, Restartable: r.Restartable,
		Bucket: r.Bucket, BucketMax: r.BucketMax, Reservations: r.Reservations,
	}
}

// Running is an active job as the scheduler sees it.
func Running(j *state.Job) sched.Running {
	r := sched.Running{Job: Waiting(j), Start: j.Attempt.Start, End: j.Attempt.Start + j.LimitLeft(), Halting: j.Ending != nil}
	for _, k := range j.Attempt.Ranks {
		r.Ranks = append(r.Ranks, k.Alloc)
	}
	return r
}

// Node is a node as the scheduler sees it.
func Node(n *state.Node) sched.Node {
	inv := n.Inventory
	s := sched.Node{
		Name: n.Name, Cluster: inv.Cluster, MilliCPU: int64(inv.CPUs) * 1000, MemMiB: inv.MemBytes >> 20,
		DiskMiB: inv.DiskBytes >> 20, CUDA: inv.CUDA, Partitions: n.Partitions, Features: slices.Concat(inv.Features, need.Has(inv)), AllowShare: inv.AllowShare, Apart: !inv.Together,
	}
	if inv.Storage != nil {
		s.Storage = make([]sched.Root, len(inv.Storage))
		for i, r := range inv.Storage {
			s.Storage[i] = sched.Root(r)
		}
	}
	state, reason := n.State()
	switch state {
	case "up":
		s.State = sched.Up
	case "lost", "suspect":
		s.State = sched.Down
	default:
		s.State = sched.Drained
	}
	s.Reason = reason
	for _, g := range inv.GPUs {
		out := n.OutOfService(g)
		s.GPUs = append(s.GPUs, sched.GPU{
			UUID: g.UUID, Model: g.Model, MemMiB: g.MemBytes >> 20, ComputeCap: g.ComputeCap, NUMA: g.NUMA,
			Links: g.Links, Drained: out != "", Reason: out,
		})
	}
	return s
}

// Differs says whether a decision may turn out differently.
func Differs(a, b *state.Node) bool {
	as, _ := a.State()
	bs, _ := b.State()
	return as != bs || a.Hash != b.Hash || !maps.Equal(a.DrainedGPUs, b.DrainedGPUs) || !slices.Equal(a.Partitions, b.Partitions)
}
