package nodes

import (
	"fmt"

	"gbatch/sched/words"
)

// MisfitText is why the node can never hold a rank of the shape, in words.
func (n *Node) MisfitText(shape *Shape, why Misfit) string {
	switch why {
	case WrongCluster:
		return fmt.Sprintf("is in cluster %d", n.Cluster)
	case LacksFeature:
		return fmt.Sprintf("lacks features: has %q", n.Features)
	case LacksModel:
		if len(n.GPUs) == 0 {
			return "has no GPU"
		}
		return fmt.Sprintf("has %s", n.GPUs[0].Model)
	case LacksGPUMem:
		return fmt.Sprintf("its GPUs have %s GiB", words.GiB(n.GPUs[0].MemMiB))
	case LacksComputeCap:
		return fmt.Sprintf("its GPUs have compute capability %d.%d", n.GPUs[0].ComputeCap/10, n.GPUs[0].ComputeCap%10)
	case LacksCUDA:
		return fmt.Sprintf("has CUDA %d.%d", n.CUDA/100, n.CUDA%100)
	case LacksDisk:
		return fmt.Sprintf("has a disk of %s GiB", words.GiB(n.DiskMiB))
	case NoSharing:
		return "does not allow shares of a GPU"
	case FewGPUs:
		return fmt.Sprintf("has %d such GPUs of %d", shape.On(n.Kind).GPUs.Count(), shape.Least())
	case FewCores:
		return fmt.Sprintf("has %s cores of %s", words.Thousandths(n.MilliCPU), words.Thousandths(shape.MilliCPU))
	}
	return fmt.Sprintf("has %s GiB of %s", words.GiB(n.MemMiB), words.GiB(shape.MemMiB))
}
