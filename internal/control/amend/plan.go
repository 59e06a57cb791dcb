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
	Job          func(job.Number) *state.Job                       // nil: there is none such any more
	Free         func(node string, at sched.Time) sched.Allocation // cores, memory and disk that no job holds at a moment
}

// Promised is a job that is to start on a node between two moments with what is held
// there; 0: none.
func (p Plan) Promised(held sched.Allocation, from, until sched.Time) job.Number {
	for _, res := range p.Reservations {
		if res.At < from || res.At >= until || p.waits(res.Job) == nil {
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

// PromisedLicenses is a job that is to start between two moments with licences of which
// some are on the list; 0: none.
func (p Plan) PromisedLicenses(list []sched.License, from, until sched.Time) job.Number {
	for _, res := range p.Reservations {
		if res.At < from || res.At >= until {
			continue
		}
		if j := p.waits(res.Job); j != nil && slices.ContainsFunc(j.Request.Shape.Licenses, func(x sched.License) bool {
			return slices.ContainsFunc(list, func(y sched.License) bool { return x.Name == y.Name })
		}) {
			return j.Number
		}
	}
	return 0
}

// waits is a job of the plan, if it waits still.
func (p Plan) waits(id sched.JobID) *state.Job {
	if j := p.Job(job.Number(id)); j != nil && j.State == job.Queued {
		return j
	}
	return nil
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
