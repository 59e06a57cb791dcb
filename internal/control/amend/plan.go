package amend

import (
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Plan is who was promised what, as those who ask for more time must leave it.
type Plan struct {
	Reservations []sched.Reservation
	Waits        func(job.Number) bool                             // whether a job of it waits still
	Free         func(node string, at sched.Time) sched.Allocation // cores, memory and disk that no job holds at a moment
}

// Promised is a job that is to start on a node between two moments with what is held
// there; 0: none.
func (p Plan) Promised(held sched.Allocation, from, until sched.Time) job.Number {
	for _, res := range p.Reservations {
		if res.At < from || res.At >= until || !p.Waits(job.Number(res.Job)) {
			continue
		}
		for _, a := range res.Ranks {
			if a.Node == held.Node && (shareGPU(a, held) || !p.besides(held, res.At)) {
				return job.Number(res.Job)
			}
		}
	}
	return 0
}

func shareGPU(a, b sched.Allocation) bool {
	return slices.ContainsFunc(a.GPUs, func(x sched.GPUShare) bool {
		return slices.ContainsFunc(b.GPUs, func(y sched.GPUShare) bool { return x.UUID == y.UUID })
	})
}

// besides says whether a node has the cores, memory and disk for all that the plan
// starts there up to a moment, if what is held is held on.
func (p Plan) besides(held sched.Allocation, at sched.Time) bool {
	free := Without(p.Free(held.Node, at), held)
	for _, res := range p.Reservations {
		for _, a := range res.Ranks {
			if a.Node == held.Node && res.At <= at {
				free = Without(free, a)
			}
		}
	}
	return min(free.MilliCPU, free.MemMiB, free.DiskMiB) >= 0
}

// Without is the cores, memory and disk of a that b leaves.
func Without(a, b sched.Allocation) sched.Allocation {
	a.MilliCPU, a.MemMiB, a.DiskMiB = a.MilliCPU-b.MilliCPU, a.MemMiB-b.MemMiB, a.DiskMiB-b.DiskMiB
	return a
}

// Held is what all ranks of an attempt hold on a node.
func Held(at *state.Attempt, name string) sched.Allocation {
	all := sched.Allocation{Node: name}
	for _, r := range at.Ranks {
		if a := r.Alloc; a.Node == name {
			all.GPUs = slices.Concat(all.GPUs, a.GPUs)
			all.MilliCPU, all.MemMiB, all.DiskMiB = all.MilliCPU+a.MilliCPU, all.MemMiB+a.MemMiB, all.DiskMiB+a.DiskMiB
		}
	}
	return all
}
