package sched

import "gbatch/sched/spec"

// room is the GPUs that a rank of the shape can have on the node, and whether
// there is enough of everything, by what is held there now.
func (n *node) room(x *shape, f fit) (gpuSet, bool) {
	if x.Whole() {
		return f.gpus.and(n.usable), n.idle() && n.wholeFits(x, f)
	}
	if n.cpuFree < x.MilliCPU || n.memFree < x.MemMiB || len(n.ranks) > 0 && n.ranks[0].whole {
		return gpuSet{}, false
	}
	if x.MilliGPU == 0 {
		return gpuSet{}, true
	}
	avail := f.gpus.and(n.free)
	if x.share() {
		avail = avail.or(n.sharing(f.gpus, x.MilliGPU))
	}
	return avail, avail.count() >= x.least()
}

// sharing is those of the GPUs that are partly used and have so much left.
func (n *node) sharing(gpus gpuSet, milli int64) gpuSet {
	gpus = gpus.and(n.part)
	for g := gpus.next(0); g >= 0; g = gpus.next(g + 1) {
		if int64(n.used[g])+milli > spec.WholeGPU {
			gpus.remove(g)
		}
	}
	return gpus
}

// wholeFits says whether an idle node satisfies a shape that takes all of it.
func (n *node) wholeFits(x *shape, f fit) bool {
	return f.gpus.and(n.usable).count() >= x.least() &&
		(!x.AllGPUs || n.usable.andNot(f.gpus).empty()) &&
		n.MilliCPU >= x.MilliCPU && n.MemMiB >= x.MemMiB
}
