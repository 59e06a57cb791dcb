package nodes

import "gbatch/sched/spec"

// Each calls f for the nodes of a kind that may have room, fullest first, until
// it returns false. It returns how many it found by what is free on them.
func (kind *Kind) Each(shape *Shape, f func(*Node) bool) (looked int) {
	if shape.choosy() {
		for _, n := range kind.Nodes {
			if n.indexed && shape.Named(n) && !f(n) {
				return looked
			}
		}
		return looked
	}
	walk := func(set nodeSet, skip nodeSet) bool {
		for i := set.next(0); i >= 0; i = set.next(i + 1) {
			if skip != nil && skip.has(i) {
				continue
			}
			looked++
			if !f(kind.Nodes[i]) {
				return false
			}
		}
		return true
	}
	switch {
	case shape.Whole():
		for w := len(kind.whole) - 1; w >= 0; w-- {
			if !walk(kind.whole[w], nil) {
				return looked
			}
		}
	case shape.Share():
		if !walk(kind.part, nil) {
			return looked
		}
		for w := 1; w < len(kind.whole); w++ {
			if !walk(kind.whole[w], kind.part) {
				return looked
			}
		}
	case shape.MilliGPU > 0:
		for w := shape.WholeGPUs(); w < len(kind.whole); w++ {
			if !walk(kind.whole[w], nil) {
				return looked
			}
		}
	default:
		for b := min(coresBucket(shape.MilliCPU), coresBuckets-1); b < coresBuckets; b++ {
			if !walk(kind.cores[b], nil) {
				return looked
			}
		}
	}
	return looked
}

// Room is the GPUs that a rank of the shape can have on the node, and whether
// there is enough of everything, by what is held there now.
func (n *Node) Room(shape *Shape, f Fit) (GPUSet, bool) {
	if shape.Whole() {
		return f.GPUs.And(n.Usable), n.Idle() && n.WholeFits(shape, f)
	}
	if n.CPUFree < shape.MilliCPU || n.MemFree < shape.MemOf(n.MemMiB) || n.DiskFree < shape.DiskMiB || len(n.Ranks) > 0 && n.Ranks[0].Whole {
		return GPUSet{}, false
	}
	if shape.MilliGPU == 0 {
		return GPUSet{}, true
	}
	avail := f.GPUs.And(n.Free)
	if shape.Share() {
		avail = avail.or(n.sharing(f.GPUs, shape.MilliGPU))
	}
	return avail, avail.Count() >= shape.Least()
}

// sharing is those of the GPUs that are partly used and have so much left.
func (n *Node) sharing(gpus GPUSet, milli int64) GPUSet {
	gpus = gpus.And(n.part)
	for g := gpus.Next(0); g >= 0; g = gpus.Next(g + 1) {
		if int64(n.Used[g])+milli > spec.WholeGPU {
			gpus.Remove(g)
		}
	}
	return gpus
}

// WholeFits says whether an idle node satisfies a shape that takes all of it.
func (n *Node) WholeFits(shape *Shape, f Fit) bool {
	return f.GPUs.And(n.Usable).Count() >= shape.Least() &&
		(!shape.AllGPUs || n.Usable.AndNot(f.GPUs).Empty()) &&
		n.MilliCPU >= shape.MilliCPU && n.MemMiB >= shape.MemMiB
}

// FreeMilli is the thousandths that are free on GPUs in order.
func (n *Node) FreeMilli() int64 {
	var sum int64
	for g := n.Usable.Next(0); g >= 0; g = n.Usable.Next(g + 1) {
		sum += spec.WholeGPU - int64(n.Used[g])
	}
	return sum
}
