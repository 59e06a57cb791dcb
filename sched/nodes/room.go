package nodes

import "gbatch/sched/spec"

// Room is the GPUs that a rank of the shape can have on the node, and whether
// there is enough of everything, by what is held there now.
func (n *Node) Room(shape *Shape, f Fit) (GPUSet, bool) {
	if shape.Whole() {
		return f.GPUs.And(n.Usable), n.Idle() && n.WholeFits(shape, f)
	}
	if n.CPUFree < shape.MilliCPU || n.MemFree < shape.MemMiB || len(n.Ranks) > 0 && n.Ranks[0].Whole {
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
