package nodes

import "gbatch/sched/spec"

// Room is the GPUs that a rank of the shape can have on the node, and whether
// there is enough of everything, by what is held there now.
func (n *Node) Room(x *Shape, f Fit) (GPUSet, bool) {
	if x.Whole() {
		return f.GPUs.And(n.Usable), n.Idle() && n.WholeFits(x, f)
	}
	if n.CPUFree < x.MilliCPU || n.MemFree < x.MemMiB || len(n.Ranks) > 0 && n.Ranks[0].Whole {
		return GPUSet{}, false
	}
	if x.MilliGPU == 0 {
		return GPUSet{}, true
	}
	avail := f.GPUs.And(n.Free)
	if x.Share() {
		avail = avail.or(n.sharing(f.GPUs, x.MilliGPU))
	}
	return avail, avail.Count() >= x.Least()
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
func (n *Node) WholeFits(x *Shape, f Fit) bool {
	return f.GPUs.And(n.Usable).Count() >= x.Least() &&
		(!x.AllGPUs || n.Usable.AndNot(f.GPUs).Empty()) &&
		n.MilliCPU >= x.MilliCPU && n.MemMiB >= x.MemMiB
}

// FreeMilli is the thousandths that are free on GPUs in order.
func (n *Node) FreeMilli() int64 {
	var sum int64
	for g := n.Usable.Next(0); g >= 0; g = n.Usable.Next(g + 1) {
		sum += spec.WholeGPU - int64(n.Used[g])
	}
	return sum
}
