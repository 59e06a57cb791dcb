package amend

import (
	"cmp"
	"fmt"
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

// Promise is what somebody was promised, from a moment on.
type Promise struct {
	Job  job.Number // who; 0: who has the reservation
	What string     // as "job 3 was promised what job 1 holds on n1"
	At   sched.Time
}

// Promised are the jobs that are to start between two moments with what a job holds on
// a node.
func (p Plan) Promised(holder job.Number, held sched.Allocation, from, until sched.Time) []Promise {
	what := fmt.Sprintf("what job %d holds on %s", holder, held.Node)
	return p.starting(what, from, until, func(_ *state.Job, res sched.Reservation) bool {
		return slices.ContainsFunc(res.Ranks, func(a sched.Allocation) bool {
			return a.Node == held.Node && (shareGPU(a, held) || !p.besides(held, res.At))
		})
	})
}

// PromisedLicenses are the jobs that are to start between two moments with licences that
// a job holds.
func (p Plan) PromisedLicenses(holder *state.Job, from, until sched.Time) []Promise {
	what := fmt.Sprintf("licences that job %d holds", holder.Number)
	return p.starting(what, from, until, func(j *state.Job, _ sched.Reservation) bool {
		return slices.ContainsFunc(j.Request.Shape.Licenses, func(x sched.License) bool {
			return slices.ContainsFunc(holder.Request.Shape.Licenses, func(y sched.License) bool { return x.Name == y.Name })
		})
	})
}

// starting are the jobs that are to start between two moments and of which a function
// says that they need what somebody holds.
func (p Plan) starting(what string, from, until sched.Time, needs func(*state.Job, sched.Reservation) bool) []Promise {
	var out []Promise
	for _, res := range p.Reservations {
		if res.At < from || res.At >= until {
			continue
		}
		if j := p.waits(res.Job); j != nil && needs(j, res) {
			out = append(out, Promise{Job: j.Number, What: fmt.Sprintf("job %d was promised %s", j.Number, what), At: res.At})
		}
	}
	return out
}

// First are the promises, those that begin first before others, and of each job one.
func First(all []Promise) []Promise {
	slices.SortStableFunc(all, func(p, q Promise) int {
		return cmp.Or(cmp.Compare(p.At, q.At), cmp.Compare(p.Job, q.Job))
	})
	seen := map[job.Number]bool{}
	return slices.DeleteFunc(all, func(p Promise) bool {
		again := p.Job > 0 && seen[p.Job]
		seen[p.Job] = true
		return again
	})
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

// FreeOn is what of a node's cores, memory and disk no job holds at a moment, by
// the time limits of those that run. At 0, which is now, each of them counts: one
// may run on beyond its limit until it has ended.
func FreeOn(n *state.Node, jobs *state.Table, at sched.Time) sched.Allocation {
	free := sched.Allocation{Node: n.Name, MilliCPU: int64(n.Inventory.CPUs) * 1000, MemMiB: n.Inventory.MemBytes >> 20, DiskMiB: n.Inventory.DiskBytes >> 20}
	for _, num := range n.Jobs {
		if j := jobs.Get(num); j.Holds() && (at == 0 || j.Attempt.Start+j.LimitLeft() > at) {
			free = Without(free, Held(j.Attempt, n.Name))
		}
	}
	return free
}
