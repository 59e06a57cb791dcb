package sched

import (
	"fmt"
	"slices"

	"gbatch/sched/spec"
)

// run is a job that holds an allocation.
type run struct {
	spec.Running
	shape *shape
	held  []*rank
	milli int64 // GPU thousandths, all ranks
}

// hold puts the ranks of a job on their nodes. With fact it takes what the nodes,
// as they are now, cannot explain; see State.Adopt.
func (ix *index) hold(r spec.Running, fact bool) (*run, error) {
	for i := range r.Ranks {
		if err := ix.checkAllocation(r.Ranks[:i+1], fact); err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	r.Ranks = slices.Clone(r.Ranks)
	out := &run{Running: r, shape: ix.intern(r.Job.Shape)}
	out.Job.Shape = &out.shape.Shape
	out.shape.refs++
	out.shape.submitted++
	for i, a := range r.Ranks {
		n := ix.nodes[a.Node]
		if n == nil {
			n = ix.addNode(spec.Node{Name: a.Node, State: spec.Down, Reason: "removed"})
			n.gone = true
		}
		k := &rank{run: out, node: n, no: i, cpu: a.MilliCPU, mem: a.MemMiB, whole: out.shape.Whole()}
		n.bind(k)
		out.held = append(out.held, k)
		out.milli += a.MilliGPU()
	}
	for _, k := range out.held {
		k.node.take(k)
	}
	return out, nil
}

// release lifts them again.
func (ix *index) release(r *run) {
	for _, k := range r.held {
		k.node.give(k)
		if k.node.gone && k.node.idle() {
			ix.dropNode(k.node)
		}
	}
	r.shape.submitted--
	ix.unref(r.shape)
}

// checkAllocation checks the last of a job's ranks.
func (ix *index) checkAllocation(ranks []spec.Allocation, fact bool) error {
	a := ranks[len(ranks)-1]
	n := ix.nodes[a.Node]
	if a.MilliCPU < 0 || a.MemMiB < 0 || a.MilliCPU > spec.MaxAmount || a.MemMiB > spec.MaxAmount {
		return fmt.Errorf("holds %d milli CPU and %d MiB: want 0 or more of both", a.MilliCPU, a.MemMiB)
	}
	if n == nil && !fact {
		return fmt.Errorf("node %q is not known", a.Node)
	}
	used := map[string]int64{}
	var cpu, mem int64
	for _, b := range ranks {
		if b.Node == a.Node {
			cpu += b.MilliCPU
			mem += b.MemMiB
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
		case g.Milli < 1 || g.Milli > WholeGPU:
			return fmt.Errorf("holds %d thousandths of GPU %s: want 1..1000", g.Milli, g.UUID)
		case !known && !fact:
			return fmt.Errorf("node %q reports no GPU %s", a.Node, g.UUID)
		case held+used[g.UUID] > WholeGPU:
			return fmt.Errorf("GPU %s of node %q is held already: %d of 1000 before, %d more asked", g.UUID, a.Node, held, used[g.UUID])
		}
	}
	if !fact && (cpu > n.cpuFree || mem > n.memFree) {
		return fmt.Errorf("node %q has %d milli CPU and %d MiB free: %d and %d asked", a.Node, n.cpuFree, n.memFree, cpu, mem)
	}
	return nil
}

// held is how much of a GPU is in use, and whether the node reports it.
func (n *node) held(uuid string) (milli int64, known bool) {
	for i, g := range n.GPUs {
		if g.UUID == uuid {
			return int64(n.used[i]), true
		}
	}
	for _, r := range n.ranks {
		for _, g := range r.lost {
			if g.UUID == uuid {
				milli += g.Milli
			}
		}
	}
	return milli, false
}

// bind finds the rank's GPUs in the node's inventory.
func (n *node) bind(k *rank) {
	k.gpus, k.lost = nil, nil
	for _, g := range k.run.Ranks[k.no].GPUs {
		i := slices.IndexFunc(n.GPUs, func(x spec.GPU) bool { return x.UUID == g.UUID })
		if i < 0 {
			k.lost = append(k.lost, g)
			continue
		}
		k.gpus = append(k.gpus, gpuUse{int32(i), int32(g.Milli)})
	}
}
