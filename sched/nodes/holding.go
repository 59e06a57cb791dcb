package nodes

import (
	"fmt"
	"slices"

	"gbatch/sched/spec"
)

// Run is a job that holds an allocation.
type Run struct {
	spec.Running
	Shape    *Shape
	Held     []*Rank
	MilliGPU int64 // GPU thousandths, all ranks
}

// Hold puts the ranks of a job on their nodes. With fact it takes what the nodes,
// as they are now, cannot explain; see State.Adopt.
func (ix *Index) Hold(r spec.Running, fact bool) (*Run, error) {
	for i := range r.Ranks {
		if err := ix.checkAllocation(r.Ranks[:i+1], fact); err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	r.Ranks = slices.Clone(r.Ranks)
	run := &Run{Running: r, Shape: ix.Intern(r.Job.Shape)}
	run.Job.Shape = &run.Shape.Shape
	run.Shape.Refs++
	run.Shape.Submitted++
	for i, a := range r.Ranks {
		n := ix.Nodes[a.Node]
		if n == nil {
			n = ix.addNode(spec.Node{Name: a.Node, State: spec.Down, Reason: "removed"})
			n.Gone = true
		}
		rank := &Rank{Run: run, Node: n, No: i, MilliCPU: a.MilliCPU, MemMiB: a.MemMiB, DiskMiB: a.DiskMiB, Whole: run.Shape.Whole()}
		n.bind(rank)
		run.Held = append(run.Held, rank)
		run.MilliGPU += a.MilliGPU()
	}
	for _, rank := range run.Held {
		rank.Node.Take(rank)
	}
	return run, nil
}

// Release lifts them again.
func (ix *Index) Release(run *Run) {
	for _, rank := range run.Held {
		rank.Node.Give(rank)
		if rank.Node.Gone && rank.Node.Idle() {
			ix.dropNode(rank.Node)
		}
	}
	run.Shape.Submitted--
	ix.Unref(run.Shape)
}

// checkAllocation checks the last of a job's ranks.
func (ix *Index) checkAllocation(ranks []spec.Allocation, fact bool) error {
	a := ranks[len(ranks)-1]
	n := ix.Nodes[a.Node]
	if a.MilliCPU < 0 || a.MemMiB < 0 || a.MilliCPU > spec.MaxAmount || a.MemMiB > spec.MaxAmount {
		return fmt.Errorf("holds %d milli CPU and %d MiB: want 0 or more of both", a.MilliCPU, a.MemMiB)
	}
	if a.DiskMiB < 0 || a.DiskMiB > spec.MaxAmount {
		return fmt.Errorf("holds %d MiB of disk: want 0 or more", a.DiskMiB)
	}
	if n == nil && !fact {
		return fmt.Errorf("node %q is not known", a.Node)
	}
	used := map[string]int64{}
	var cpu, mem, disk int64
	for _, b := range ranks {
		if b.Node == a.Node {
			cpu += b.MilliCPU
			mem += b.MemMiB
			disk += b.DiskMiB
			for _, g := range b.GPUs {
				used[g.UUID] += g.Milli
			}
		}
	}
	for _, g := range a.GPUs {
		held, known := int64(0), false
		if n != nil {
			held, known = n.held(g.UUID)
		}
		switch {
		case g.Milli < 1 || g.Milli > spec.WholeGPU:
			return fmt.Errorf("holds %d thousandths of GPU %s: want 1..1000", g.Milli, g.UUID)
		case !known && !fact:
			return fmt.Errorf("node %q reports no GPU %s", a.Node, g.UUID)
		case held+used[g.UUID] > spec.WholeGPU:
			return fmt.Errorf("GPU %s of node %q is held already: %d of 1000 before, %d more asked", g.UUID, a.Node, held, used[g.UUID])
		}
	}
	if !fact && (cpu > n.CPUFree || mem > n.MemFree) {
		return fmt.Errorf("node %q has %d milli CPU and %d MiB free: %d and %d asked", a.Node, n.CPUFree, n.MemFree, cpu, mem)
	}
	if !fact && disk > n.DiskFree {
		return fmt.Errorf("node %q has %d MiB of disk free: %d asked", a.Node, n.DiskFree, disk)
	}
	return nil
}

// held is how much of a GPU is in use, and whether the node reports it.
func (n *Node) held(uuid string) (milli int64, known bool) {
	for i, g := range n.GPUs {
		if g.UUID == uuid {
			return int64(n.Used[i]), true
		}
	}
	for _, rank := range n.Ranks {
		for _, g := range rank.lost {
			if g.UUID == uuid {
				milli += g.Milli
			}
		}
	}
	return milli, false
}

// bind finds the rank's GPUs in the node's inventory.
func (n *Node) bind(rank *Rank) {
	rank.GPUs, rank.lost = nil, nil
	for _, g := range rank.Run.Ranks[rank.No].GPUs {
		i := slices.IndexFunc(n.GPUs, func(x spec.GPU) bool { return x.UUID == g.UUID })
		if i < 0 {
			rank.lost = append(rank.lost, g)
			continue
		}
		rank.GPUs = append(rank.GPUs, GPUUse{int32(i), int32(g.Milli)})
	}
}
