package sched

import (
	"fmt"

	"gbatch/sched/words"
)

// misfitText is why the node can never hold a rank of the shape, in words.
func (n *node) misfitText(x *shape, why misfit) string {
	switch why {
	case wrongCluster:
		return fmt.Sprintf("is in cluster %d", n.Cluster)
	case lacksFeature:
		return fmt.Sprintf("lacks features: has %q", n.Features)
	case lacksModel:
		if len(n.GPUs) == 0 {
			return "has no GPU"
		}
		return fmt.Sprintf("has %s", n.GPUs[0].Model)
	case lacksGPUMem:
		return fmt.Sprintf("its GPUs have %s GiB", words.GiB(n.GPUs[0].MemMiB))
	case lacksComputeCap:
		return fmt.Sprintf("its GPUs have compute capability %d.%d", n.GPUs[0].ComputeCap/10, n.GPUs[0].ComputeCap%10)
	case lacksCUDA:
		return fmt.Sprintf("has CUDA %d.%d", n.CUDA/100, n.CUDA%100)
	case lacksDisk:
		return fmt.Sprintf("has a disk of %s GiB", words.GiB(n.DiskMiB))
	case noSharing:
		return "does not allow shares of a GPU"
	case fewGPUs:
		return fmt.Sprintf("has %d such GPUs of %d", x.on(n.kind).gpus.count(), x.least())
	case fewCores:
		return fmt.Sprintf("has %s cores of %s", words.Thousandths(n.MilliCPU), words.Thousandths(x.MilliCPU))
	}
	return fmt.Sprintf("has %s GiB of %s", words.GiB(n.MemMiB), words.GiB(x.MemMiB))
}
